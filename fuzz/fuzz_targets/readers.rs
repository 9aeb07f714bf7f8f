//! Files of every kind that the library reads, changed as the bytes say: the first byte is the kind, eight more seed the changes,
//! what follows is taken as a file by itself where it is long enough.
//!
//! ```text
//! RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none readers -- -malloc_limit_mb=512 -rss_limit_mb=2048 -timeout=10
//! ```
#![no_main]

#[path = "../../crates/brenier/tests/fuzz_body/mod.rs"]
mod fuzz_body;

use std::path::PathBuf;
use std::sync::OnceLock;

use fuzz_body::{Reader, Rng, exercise, mutated, seeds};

type Corpus = (PathBuf, Vec<(Reader, Vec<Vec<u8>>)>);
static CORPUS: OnceLock<Corpus> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (folder, corpus) = CORPUS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let corpus = seeds(&folder);
        (folder, corpus)
    });
    let [kind, rest @ ..] = bytes else { return };
    let (reader, sound) = &corpus[usize::from(*kind) % corpus.len()];
    let file = match rest.split_first_chunk::<8>() {
        Some((_, file)) if file.len() > 16 => file.to_vec(),
        Some((seed, _)) => {
            let mut rng = Rng(u64::from_le_bytes(*seed));
            let (seed, other) = (rng.below(sound.len()), rng.below(sound.len()));
            mutated(*reader, &sound[seed], &sound[other], &mut rng)
        }
        None => return,
    };
    exercise(folder, *reader, &file);
    exercise(folder, *reader, &sound[0]);
});
