//! Which files a path means: itself, or all that match it.
//!
//! As far as a path exists as it is written it is meant literally; what follows is a pattern if it has `*`, `?`, `[…]` or
//! `{…}`. Names that begin with a dot are matched by patterns that do, too, as in a shell.

use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// A file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// What its message ids begin with: its path behind the fixed part of the pattern, or its name.
    pub name: String,
    /// Its size when it was found, bytes.
    pub size: u64,
}

/// Why there are no files.
#[derive(Debug, thiserror::Error)]
pub(super) enum FindError {
    /// A directory or file cannot be looked at.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is no pattern.
    #[error("{} is not a pattern: {what}", .path.display())]
    Pattern {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing is there that would be read.
    #[error("no file matches {}", .0.display())]
    Nothing(PathBuf),
    /// A path that is no file.
    #[error("{} is a directory", .0.display())]
    Directory(PathBuf),
    /// A match that could be read only once.
    #[error("{} matches and is no regular file: a pipe is read by its own path", .0.display())]
    NotRegular(PathBuf),
}

/// The files that `path` means, sorted. One that is there by several names is there once.
pub(super) fn find(path: &Path) -> Result<Vec<Found>, FindError> {
    let (fixed, pattern) = split(path);
    if pattern.is_empty() {
        let metadata = fixed.metadata().map_err(at(&fixed))?;
        if metadata.is_dir() {
            return Err(FindError::Directory(fixed));
        }
        let name = fixed.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(vec![Found { path: fixed, name, size: metadata.len() }]);
    }
    let parts = pattern.iter().map(|part| Part::of(part));
    let parts =
        parts.collect::<Result<Vec<_>, _>>().map_err(|what| FindError::Pattern { path: path.to_owned(), what })?;
    let mut paths = Vec::new();
    walk(&fixed, &parts, &mut paths)?;
    paths.sort();
    let mut found: Vec<Found> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for path in paths {
        let metadata = path.metadata().map_err(at(&path))?;
        if metadata.is_dir() {
            continue;
        }
        if !metadata.is_file() {
            return Err(FindError::NotRegular(path));
        }
        if known.insert(path.canonicalize().map_err(at(&path))?) {
            let name = path.strip_prefix(&fixed).unwrap_or(&path).to_string_lossy().into_owned();
            found.push(Found { path, name, size: metadata.len() });
        }
    }
    if found.is_empty() { Err(FindError::Nothing(path.to_owned())) } else { Ok(found) }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FindError {
    let path = path.to_owned();
    |error| FindError::Io { path, error }
}

/// The part that is meant literally, and what is a pattern behind it.
fn split(path: &Path) -> (PathBuf, Vec<&OsStr>) {
    let is_pattern = |name: &OsStr| name.as_bytes().iter().any(|byte| b"*?[{".contains(byte));
    let mut fixed = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.clone().next() {
        let next = fixed.join(component);
        if is_pattern(component.as_os_str()) && next.symlink_metadata().is_err() {
            break;
        }
        fixed = next;
        components.next();
    }
    (fixed, components.map(Component::as_os_str).collect())
}

/// What the name of a file or directory must be.
enum Part {
    /// Any directories, also none.
    Any,
    Name(Box<GlobMatcher>, bool),
}

impl Part {
    fn of(pattern: &OsStr) -> Result<Self, String> {
        let text = pattern.to_str().ok_or("it is not UTF-8")?;
        if text == "**" {
            return Ok(Self::Any);
        }
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        Ok(Self::Name(Box::new(glob.compile_matcher()), text.starts_with('.')))
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().first() == Some(&b'.')
}

/// All that match `parts` below a directory.
fn walk(directory: &Path, parts: &[Part], found: &mut Vec<PathBuf>) -> Result<(), FindError> {
    let Some((part, rest)) = parts.split_first() else { return Ok(()) };
    if let (Part::Any, true) = (part, !rest.is_empty()) {
        walk(directory, rest, found)?;
    }
    // A pattern does not say that a directory is there.
    let entries = match fs::read_dir(if directory.as_os_str().is_empty() { Path::new(".") } else { directory }) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        entries => entries.map_err(at(directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(at(directory))?;
        let (name, path) = (entry.file_name(), directory.join(entry.file_name()));
        match part {
            // Links are not followed: they may lead back.
            Part::Any if is_hidden(&name) => {}
            Part::Any if entry.file_type().map_err(at(&path))?.is_dir() => walk(&path, parts, found)?,
            Part::Any if rest.is_empty() => found.push(path),
            Part::Name(glob, hidden) if (*hidden || !is_hidden(&name)) && glob.is_match(Path::new(&name)) => {
                if rest.is_empty() {
                    found.push(path);
                } else {
                    walk(&path, rest, found)?;
                }
            }
            Part::Any | Part::Name(..) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    fn directory(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        directory
    }

    fn names(directory: &Path, pattern: &str) -> Vec<String> {
        let found = find(&directory.join(pattern)).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        found.into_iter().map(|found| found.name).collect()
    }

    #[test]
    fn a_pattern_means_all_files_that_match_sorted() {
        let files = ["b.csv", "a.csv", "a.csv.gz", ".c.csv", "d.txt", "x/a.csv", "x/y/a.csv", "x/.z/a.csv", "e.csv/f"];
        let directory = directory(&files);
        let names = |pattern| names(directory.path(), pattern);
        assert_eq!(names("*.csv"), ["a.csv", "b.csv"], "a directory of that name is none");
        assert_eq!(names("*.csv{,.gz}"), ["a.csv", "a.csv.gz", "b.csv"]);
        assert_eq!(names("[ab].csv"), ["a.csv", "b.csv"]);
        assert_eq!(names("?.txt"), ["d.txt"]);
        assert_eq!(names(".*.csv"), [".c.csv"]);
        assert_eq!(names("*/a.csv"), ["x/a.csv"]);
        assert_eq!(names("x/*.csv"), ["a.csv"], "behind the fixed part");
        assert_eq!(names("**/a.csv"), ["a.csv", "x/a.csv", "x/y/a.csv"]);
        assert_eq!(names("x/**"), ["a.csv", "y/a.csv"]);
        assert_eq!(names("a.csv"), ["a.csv"]);
    }

    #[test]
    fn what_exists_as_it_is_written_is_meant_literally() {
        let directory = directory(&["[x]/a.csv", "[x]/b.csv", "x/c.csv", "*.csv", "other.csv"]);
        assert_eq!(names(directory.path(), "[x]/*.csv"), ["a.csv", "b.csv"]);
        assert_eq!(names(directory.path(), "*.csv"), ["*.csv"]);
    }

    #[test]
    fn a_file_is_read_once_by_whatever_names() {
        let directory = directory(&["b.csv", "x/c.csv"]);
        std::os::unix::fs::symlink("b.csv", directory.path().join("a.csv")).unwrap();
        std::os::unix::fs::symlink("x", directory.path().join("y")).unwrap();
        std::os::unix::fs::symlink(directory.path(), directory.path().join("x/up")).unwrap();
        assert_eq!(names(directory.path(), "*.csv"), ["a.csv"]);
        assert_eq!(names(directory.path(), "*/*.csv"), ["x/c.csv"]);
        assert_eq!(names(directory.path(), "**/*.csv"), ["a.csv", "x/c.csv"]);
    }

    #[test]
    fn a_name_that_is_no_text_is_a_file_like_others() {
        let directory = directory(&[]);
        fs::write(directory.path().join(OsString::from_vec(b"\xff.csv".to_vec())), "x").unwrap();
        assert_eq!(names(directory.path(), "*.csv"), ["\u{fffd}.csv"]);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let directory = directory(&["a.csv"]);
        let refused = |pattern: &str| find(&directory.path().join(pattern)).unwrap_err().to_string();
        assert!(refused("*.txt").starts_with("no file matches "));
        assert!(refused("gone/*.txt").starts_with("no file matches "));
        assert!(refused("gone.csv").contains("No such file"));
        assert!(refused("").ends_with("is a directory"));
        assert!(refused("[a.csv").contains("is not a pattern: unclosed character class"), "{}", refused("[a.csv"));
        let fifo = directory.path().join("p.csv");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(refused("*.csv").contains("is no regular file"));
        std::os::unix::fs::symlink("nowhere", directory.path().join("l.txt")).unwrap();
        assert!(refused("*.txt").contains("No such file"), "a link to nothing matches, and is not passed over");
    }
}
