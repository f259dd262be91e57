//! Compiled code on disk, so that a start does not compile.
//!
//! Loading machine code trusts its bytes, so an entry is read only if it is a regular file of ours that nobody
//! else can write, and its content has the sha256 in its header. Anything else is compiled anew, with a warning.
//! An entry is keyed by the component's digest and by wasmtime's compatibility hash (version, target, flags): code
//! of another wasmtime or another configuration has another name.

use super::engine::{Metering, Sandbox};
use crate::digest::Digest;
use std::fs;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use wasmtime::component::Component;

const MAGIC: &[u8; 16] = b"preflight-code1\n";
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
        let path = self.directory.join(entry_name(sandbox, digest));
        match read(&path) {
            Ok(Some(code)) => match deserialize(sandbox, &code) {
                Ok(component) => return Ok((component, Source::Cached)),
                Err(error) => tracing::warn!(path = %path.display(), "cached code is not usable, compiling: {error:#}"),
            },
            Ok(None) => {}
            Err(reason) => tracing::warn!(path = %path.display(), "cached code refused, compiling: {reason}"),
        }
        let code = sandbox.compile(wasm)?;
        if let Err(error) = self.write(&path, &code) {
            tracing::warn!(path = %path.display(), "cannot keep compiled code: {error}");
        }
        Ok((deserialize(sandbox, &code)?, Source::Compiled))
    }

    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        // A temporary file is made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(MAGIC)?;
        file.write_all(Digest::of(code).bytes())?;
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
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {}, not to us", metadata.uid()));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(format!("its mode is {:o}, others may touch it", metadata.permissions().mode() & 0o777));
    }
    let mut bytes = fs::read(path).map_err(|error| error.to_string())?;
    if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
        return Err("it is not an entry of this cache, or cut off".to_owned());
    }
    let code = bytes.split_off(HEADER);
    if Digest::of(&code).bytes() != &bytes[MAGIC.len()..] {
        return Err("its content does not have the sha256 it was written with".to_owned());
    }
    Ok(Some(code))
}

fn deserialize(sandbox: &Sandbox, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `code` comes from this process's compiler, or from a file that only this user can write and whose
    // content has the sha256 that was stored when we compiled it. wasmtime checks version and configuration.
    unsafe { Component::deserialize(sandbox.engine(), code) }
}
