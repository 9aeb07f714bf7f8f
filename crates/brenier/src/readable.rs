//! Files that users name, opened: ordinary ones only.
//!
//! A pipe without a writer would keep a program waiting for ever, and a device would fill its memory. What is neither a file nor
//! a folder is refused before it is opened; a folder is left to say of itself that it is one.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Opens an ordinary file for reading.
///
/// # Errors
/// What the system says, and what is neither a file nor a folder.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    expect_ordinary(path.as_ref())?;
    File::open(path)
}

/// The bytes of an ordinary file.
///
/// # Errors
/// As [`open`].
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    expect_ordinary(path.as_ref())?;
    fs::read(path)
}

/// The text of an ordinary file.
///
/// # Errors
/// As [`open`], and text that is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    expect_ordinary(path.as_ref())?;
    fs::read_to_string(path)
}

fn expect_ordinary(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path)?;
    if found.is_file() || found.is_dir() {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is a pipe or a device, not an ordinary file"))
}
