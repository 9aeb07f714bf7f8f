//! How much memory the process may take, for those who are about to ask for a lot at once.

use std::sync::atomic::{AtomicU64, Ordering};

static MOST: AtomicU64 = AtomicU64::new(u64::MAX);

/// From now on nothing larger than this many bytes is asked for at once: files that unpack to more, arrays of more, and
/// models with a single value of more are refused with the number.
pub fn set_most(bytes: u64) {
    MOST.store(bytes, Ordering::Relaxed);
}

/// The bytes that may be taken; without limit where nobody has set one.
pub fn most() -> u64 {
    MOST.load(Ordering::Relaxed)
}
