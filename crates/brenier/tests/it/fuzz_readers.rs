//! A short seeded run of what `fuzz/` runs for long: broken files are errors, never panics, hangs or memory without bound.
//!
//! `FUZZ_FILES=100000 cargo test -p brenier --test it fuzz_readers` takes so many files of each kind, without cargo-fuzz;
//! `FUZZ_SEED` draws others.

use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::fuzz_body::{Reader, Rng, exercise, mutated, seeds};

/// Files of each kind in a short run.
const FILES: u64 = 600;
/// No small file may take longer than this on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Kilobytes of address space that the run has: what asks for more than a file of kilobytes can need ends it.
const SPACE: usize = 2_000_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The run itself, in a process of its own with little memory.
#[test]
#[ignore = "started by the next test, with a limit on memory"]
fn limited() {
    // Files in memory where there is such a folder: a disk would be most of the time.
    let shared = PathBuf::from("/dev/shm");
    let folder = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let count = number("FUZZ_FILES").unwrap_or(FILES);
    let first = number("FUZZ_SEED").unwrap_or(0) << 32;
    for (reader, sound) in seeds(folder.path()) {
        assert!(exercise(folder.path(), reader, &sound[0]), "the sound file of {reader:?} is refused");
        let (mut taken, begun) = (0, Instant::now());
        for k in first..first + count {
            let mut rng = Rng(k);
            let (seed, other) = (rng.below(sound.len()), rng.below(sound.len()));
            let bytes = mutated(reader, &sound[seed], &sound[other], &mut rng);
            let start = Instant::now();
            let read = catch_unwind(|| exercise(folder.path(), reader, &bytes));
            taken += u64::from(read.unwrap_or_else(|_| panic!("{reader:?}: file {k} panics")));
            assert!(start.elapsed() < PATIENCE, "{reader:?}: file {k} took {:?}", start.elapsed());
        }
        // Other readers look into the same folder.
        exercise(folder.path(), reader, &sound[0]);
        println!("{reader:?}: {count} files, {taken} taken, {:.0} s", begun.elapsed().as_secs_f64());
        // The run is worth little if all files are refused at the door, or none.
        assert!(taken > 0 && taken < count, "{reader:?}: {taken} of {count} taken");
    }
}

#[test]
fn broken_files_are_errors_and_take_little_memory() {
    let program = std::env::current_exe().unwrap();
    let run = format!(
        "ulimit -v {SPACE}; exec '{}' --exact fuzz_readers::limited --ignored --nocapture",
        program.display()
    );
    let done = Command::new("sh").args(["-c", &run]).env("RAYON_NUM_THREADS", "1").output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{:?}\n{told}", done.status);
    assert_eq!(told.matches(" taken, ").count(), Reader::ALL.len(), "{told}");
    println!("{told}");
}
