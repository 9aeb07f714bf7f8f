//! Files that are whole or not there.
//!
//! A file is written beside its place under another name, flushed to the disk and renamed. Whenever the process is
//! killed, what stands under the name is the old file, the new one, or nothing.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use ndarray_npy::NpzWriter;

use crate::error::{Error, Result};

/// What may go wrong while a file is filled.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Writes a file whole or not at all; `fill` says what is in it.
pub(crate) fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::result::Result<(), Failure>,
) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let write = || -> std::result::Result<(), Failure> {
        let made = new_file(Path::new(&temporary))?;
        // A file that is replaced keeps who may read it.
        if let Ok(old) = std::fs::metadata(path) {
            made.set_permissions(old.permissions())?;
        }
        let mut file = BufWriter::new(made);
        fill(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        std::fs::rename(&temporary, path)?;
        // The new name must reach the disk too; not every system lets a folder be flushed.
        if let Some(Ok(folder)) = path.parent().map(File::open) {
            let _ = folder.sync_all();
        }
        Ok(())
    };
    write().map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        Error::Write { path: path.to_owned(), source }
    })
}

/// A file that was not there: what an earlier process left under this name is removed, and a link is not followed.
fn new_file(path: &Path) -> std::io::Result<File> {
    let make = || OpenOptions::new().write(true).create_new(true).open(path);
    match make() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            make()
        }
        made => made,
    }
}

/// Writes bytes whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| Ok(file.write_all(bytes)?))
}

/// How arrays are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Compressed,
}

/// Writes an npz file whole or not at all; `fill` says which arrays are in it.
pub(crate) fn write_arrays(
    path: &Path,
    packing: Packing,
    fill: impl FnOnce(&mut NpzWriter<&mut BufWriter<File>>) -> std::result::Result<(), Failure>,
) -> Result<()> {
    write_with(path, |file| {
        let mut npz = match packing {
            Packing::Plain => NpzWriter::new(file),
            Packing::Compressed => NpzWriter::new_compressed(file),
        };
        if let Err(error) = fill(&mut npz) {
            // Dropped, it would try to end the archive on a disk that is full, and complain on stderr by itself.
            std::mem::forget(npz);
            return Err(error);
        }
        npz.finish()?;
        Ok(())
    })
}

/// The folder, made where it is missing.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| Error::Write { path: path.to_owned(), source: e.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_whole(&path, b"old").unwrap();
        let failed = write_with(&path, |file| {
            file.write_all(b"half of the new")?;
            Err("the lights went out".into())
        });
        assert!(failed.unwrap_err().to_string().contains("the lights went out"));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    #[cfg(unix)]
    fn a_file_keeps_its_mode_and_no_link_is_followed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_whole(&path, b"old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "not ours").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("a.txt.new")).unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"not ours");
    }
}
