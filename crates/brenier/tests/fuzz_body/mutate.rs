//! Files broken on purpose, from a sound file and a generator that decides how.

use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::Reader;

/// SplitMix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Numbers at which arithmetic and memory end, as they stand in texts.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "2",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "340282366920938463463374607431768211456",
    "1e308",
    "1e-320",
    "nan",
    "inf",
    "-0.0",
];
/// The same in bytes.
const WORDS: [u64; 10] = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX];

/// A file of this kind with a few changes.
pub(crate) fn mutated(reader: Reader, seed: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let archive = matches!(reader, Reader::Npz | Reader::Checkpoint | Reader::Traces | Reader::Results);
    if archive && rng.below(4) > 0 {
        return archived(seed, rng).unwrap_or_else(|| seed.to_vec());
    }
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(4) {
        change(reader, &mut bytes, other, rng);
    }
    if reader == Reader::Png && rng.below(4) > 0 {
        with_checksums(&mut bytes);
    }
    bytes
}

fn change(reader: Reader, bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    if bytes.is_empty() {
        bytes.push(rng.next() as u8);
        return;
    }
    // Sizes stand at the beginning, those of Parquet at the end.
    let near = bytes.len().min(96);
    let at = match (reader, rng.below(2)) {
        (Reader::Parquet, 0) => bytes.len() - 1 - rng.below(bytes.len().min(600)),
        (_, 0) => rng.below(near),
        _ => rng.below(bytes.len()),
    };
    match rng.below(9) {
        0 => bytes[at] = rng.next() as u8,
        1 => bytes[at] ^= 1 << rng.below(8),
        2 => bytes.truncate(at),
        3 => bytes.insert(at, rng.next() as u8),
        4 => {
            let end = (at + rng.below(32)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        5 => {
            let end = (at + rng.below(32)).min(bytes.len());
            bytes.drain(at..end);
        }
        6 if !other.is_empty() => {
            let from = rng.below(other.len());
            let to = (from + rng.below(64)).min(other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        7 => number_in_text(bytes, at, rng),
        _ => word(bytes, at, rng),
    }
}

/// A number of 1, 2, 4 or 8 bytes, either end first.
fn word(bytes: &mut [u8], at: usize, rng: &mut Rng) {
    let size = [1, 2, 4, 8][rng.below(4)].min(bytes.len() - at);
    let value = WORDS[rng.below(WORDS.len())];
    let little = value.to_le_bytes();
    let turned = rng.below(2) == 0;
    for k in 0..size {
        bytes[at + k] = little[if turned { size - 1 - k } else { k }];
    }
}

/// The next run of digits becomes another number.
fn number_in_text(bytes: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit).map(|k| at + k) else { return };
    let length = bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let number = NUMBERS[rng.below(NUMBERS.len())];
    bytes.splice(from..from + length, number.bytes());
}

/// An archive with a member changed, left out, doubled or under another name; its checksums are right.
fn archived(seed: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(seed)).ok()?;
    let mut members = Vec::new();
    for place in 0..archive.len() {
        let mut member = archive.by_index(place).ok()?;
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).ok()?;
        members.push((member.name().to_string(), bytes));
    }
    let chosen = rng.below(members.len());
    match rng.below(8) {
        0 => drop(members.remove(chosen)),
        1 => {
            let other = rng.below(members.len());
            members[chosen].1 = members[other].1.clone();
        }
        2 => members[chosen].0 = ["x.npy", "../x.npy", "", "states.npy"][rng.below(4)].to_string(),
        _ => {
            let other = members[rng.below(members.len())].1.clone();
            for _ in 0..=rng.below(2) {
                change(Reader::Npy, &mut members[chosen].1, &other, rng);
            }
        }
    }
    let mut made = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    for (name, bytes) in members {
        made.start_file(name, options).ok()?;
        made.write_all(&bytes).ok()?;
    }
    Some(made.finish().ok()?.into_inner())
}

/// The checksums of the parts of a PNG file put right.
fn with_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while at + 12 <= bytes.len() {
        let length = u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize;
        let Some(end) = at.checked_add(8).and_then(|from| from.checked_add(length)) else { return };
        if end + 4 > bytes.len() {
            return;
        }
        let crc = !bytes[at + 4..end].iter().fold(u32::MAX, |crc, &byte| {
            (0..8)
                .fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 })
        });
        bytes[end..end + 4].copy_from_slice(&crc.to_be_bytes());
        at = end + 4;
    }
}
