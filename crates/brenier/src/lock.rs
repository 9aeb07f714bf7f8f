//! One process at a time: whoever works in a folder holds a lock on a file of it.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};

/// Keeps other processes out of a folder for as long as it lives.
#[derive(Debug, Default)]
pub struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Locks a folder by one of its files, which is there.
    ///
    /// # Errors
    /// If another process has it.
    pub(crate) fn on(file: &Path, folder: &Path) -> Result<Lock> {
        let opened = File::open(file).map_err(|e| Error::Read { path: file.to_owned(), source: e.into() })?;
        match opened.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::AtWork { folder: folder.to_owned() }),
            // Not every file system has locks; without one a second process goes unnoticed.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Lock { _file: Some(opened) }),
        }
    }
}
