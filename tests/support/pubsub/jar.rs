//! Where the emulator's jar is. `xtask` includes this file, too: it says beforehand that the jar is missing.

use std::path::{Path, PathBuf};

/// The variable that names the emulator's jar.
pub const VARIABLE: &str = "PREFLIGHT_PUBSUB_EMULATOR";

/// Where the jar lies in a Google Cloud SDK.
pub const LIBRARY: &str = "platform/pubsub-emulator/lib";

/// The emulator's jar: where the variable says, else in a Google Cloud SDK.
pub fn jar() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        return path.exists().then_some(path);
    }
    let named = std::env::var_os("CLOUDSDK_ROOT_DIR").map(PathBuf::from);
    let usual = ["/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk"].map(PathBuf::from);
    named.into_iter().chain(usual).chain(beside_gcloud()).find_map(|root| jar_in(&root.join(LIBRARY)))
}

/// The SDK that the `gcloud` command belongs to: `ROOT/bin/gcloud`, perhaps by way of links.
fn beside_gcloud() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let gcloud = std::env::split_paths(&path).map(|directory| directory.join("gcloud")).find(|file| file.exists())?;
    Some(gcloud.canonicalize().ok()?.parent()?.parent()?.to_owned())
}

fn jar_in(library: &Path) -> Option<PathBuf> {
    let names = std::fs::read_dir(library).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    names
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("cloud-pubsub-emulator-") && name.ends_with("-all.jar")
        })
        .max()
}
