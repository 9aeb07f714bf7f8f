//! Fingerprints of files and arrays, so that a result can say what it was made from.

use ndarray::ArrayView1;
use sha2::{Digest, Sha256};

/// SHA-256 of some bytes, as hexadecimal digits.
///
/// ```
/// assert!(brenier::fingerprint(b"").starts_with("e3b0c442"));
/// ```
pub fn fingerprint(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of the little-endian bytes of a row of numbers.
pub fn fingerprint_row(row: ArrayView1<f64>) -> String {
    let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
    fingerprint(&bytes)
}
