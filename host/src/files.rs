//! Files that are replaced whole: whoever reads one sees the old content or the new, never half of it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the name of a file begins that is not in its place yet. A killed process leaves such a file behind.
pub const TEMPORARY: &str = ".new-";

/// The content of a regular file. Nothing else is opened: a pipe would be waited for.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    must_be_regular(path)?;
    std::fs::read(path)
}

/// Whether a path leads to a regular file.
pub fn must_be_regular(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

/// A file's new content under a temporary name in the same directory. Dropping it leaves the old content.
#[derive(Debug)]
pub struct Prepared {
    file: NamedTempFile,
    target: PathBuf,
}

impl Prepared {
    /// Writes the content. It is not durable yet.
    pub fn new(target: &Path, content: &[u8]) -> io::Result<Self> {
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .permissions(PermissionsExt::from_mode(0o644))
            .tempfile_in(directory(target))?;
        file.write_all(content)?;
        Ok(Self { file, target: target.to_owned() })
    }

    /// Makes the content durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_file().sync_all()
    }

    /// Gives the content its place.
    pub fn put(self) -> io::Result<()> {
        self.file.persist(self.target)?;
        Ok(())
    }
}

/// Replaces a file, so that it outlives a crash of the machine.
pub fn replace(target: &Path, content: &[u8]) -> io::Result<()> {
    let prepared = Prepared::new(target, content)?;
    prepared.sync()?;
    prepared.put()?;
    sync_directory(directory(target))
}

/// Makes a directory unless it is there, so that it outlives a crash of the machine. Its parent must be there.
pub fn ensure_directory(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Ok(()) => sync_directory(directory(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes durable which names a directory holds.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
