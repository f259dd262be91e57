//! Compiled code on disk, so that a start does not compile.
//!
//! Loading machine code trusts its bytes, so an entry is read only if it is a regular file of ours that nobody
//! else can write, and the sha256 in its header is that of its name and its content: an entry under another's name is
//! refused like a damaged one. Anything else is compiled anew, with a warning.
//! An entry is keyed by the component's digest and by wasmtime's compatibility hash (version, target, flags): code
//! of another wasmtime or another configuration has another name.

use super::engine::Sandbox;
use super::metering::Metering;
use crate::digest::{Digest, Running};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use wasmtime::component::Component;

const MAGIC: &[u8; 16] = b"preflight-code2\n";
const HEADER: usize = MAGIC.len() + 32;

/// A directory of compiled code.
#[derive(Debug, Clone)]
pub struct CodeCache {
    directory: PathBuf,
}

/// How a component's code was had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From the cache.
    Cached,
    /// Compiled now, and written to the cache where that was possible.
    Compiled,
}

impl CodeCache {
    /// A cache in a directory, which is made when something is first written.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The code of a component, from the cache or compiled. A cache that cannot be used costs time, never a start.
    pub(super) fn component(
        &self,
        sandbox: &Sandbox,
        digest: &Digest,
        wasm: &[u8],
    ) -> wasmtime::Result<(Component, Source)> {
        let name = entry_name(sandbox, digest);
        let path = self.directory.join(&name);
        match read(&path, &name) {
            Ok(Some(code)) => match deserialize(sandbox, &code) {
                Ok(component) => return Ok((component, Source::Cached)),
                Err(error) => tracing::warn!(path = %path.display(), "cached code is not usable, compiling: {error:#}"),
            },
            Ok(None) => {}
            Err(reason) => tracing::warn!(path = %path.display(), "cached code refused, compiling: {reason}"),
        }
        let code = sandbox.compile(wasm)?;
        if let Err(error) = self.write(&path, &name, &code) {
            tracing::warn!(path = %path.display(), "cannot keep compiled code: {error}");
        }
        Ok((deserialize(sandbox, &code)?, Source::Compiled))
    }

    fn write(&self, path: &Path, name: &str, code: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        // A temporary file is made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(MAGIC)?;
        file.write_all(seal(name, code).bytes())?;
        file.write_all(code)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

/// `<component sha256>-<compatibility>.code`
fn entry_name(sandbox: &Sandbox, digest: &Digest) -> String {
    let mut hasher =
        std::hash::BuildHasherDefault::<std::collections::hash_map::DefaultHasher>::default().build_hasher();
    sandbox.engine().precompile_compatibility_hash().hash(&mut hasher);
    (sandbox.metering() == Metering::On).hash(&mut hasher);
    format!("{}-{:016x}.code", digest.hex(), hasher.finish())
}

/// The code of an entry; none if there is no entry; the reason if it must not be loaded.
fn read(path: &Path, name: &str) -> Result<Option<Vec<u8>>, String> {
    // No link is followed and no pipe waited for, and what is checked is the file that is then read.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err("it is a symbolic link".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {}, not to us", metadata.uid()));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(format!("its mode is {:o}, others may touch it", metadata.permissions().mode() & 0o777));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
        return Err("it is not an entry of this cache, or cut off".to_owned());
    }
    let code = bytes.split_off(HEADER);
    if seal(name, &code).bytes() != &bytes[MAGIC.len()..] {
        return Err("its name and content do not have the sha256 it was written with".to_owned());
    }
    Ok(Some(code))
}

/// The digest of an entry: its name, which is the component's digest, and its content.
fn seal(name: &str, code: &[u8]) -> Digest {
    let mut running = Running::default();
    running.update(name.as_bytes());
    running.update(b"\n");
    running.update(code);
    running.digest()
}

fn deserialize(sandbox: &Sandbox, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `code` comes from this process's compiler, or from a file that only this user can write and whose
    // content has the sha256 that was stored when we compiled it. wasmtime checks version and configuration.
    unsafe { Component::deserialize(sandbox.engine(), code) }
}
