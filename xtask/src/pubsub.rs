//! Google's Pub/Sub emulator, which the tests run against: a program in Java that is a part of Google's Cloud SDK. It cannot be
//! fetched by a test; this says how to get it.

use std::process::Command;

use anyhow::Result;

use crate::{SetupError, exec};

/// The very search that the tests make.
#[path = "../../tests/support/pubsub/jar.rs"]
mod jar;

/// Looks whether the tests will find Java and the emulator.
pub(crate) fn ensure() -> Result<()> {
    // Java says its version on standard error: that it answers is enough.
    let java = exec::probe(Command::new("java").arg("-version")).is_some();
    match missing(java, jar::jar().is_some()) {
        None => Ok(()),
        Some(what) => Err(SetupError(what).into()),
    }
}

fn missing(java: bool, jar: bool) -> Option<String> {
    let mut lines = Vec::new();
    if !java {
        lines.push("java 11 or newer: not found. Debian: apt-get install default-jre-headless".to_owned());
    }
    if !jar {
        lines.push(format!(
            "its jar: not found in {LIBRARY} of a Google Cloud SDK. Get it: gcloud components install pubsub-emulator, or, where \
             gcloud is from Google's apt source (https://packages.cloud.google.com/apt), apt-get install \
             google-cloud-cli-pubsub-emulator. Where it lies elsewhere, {VARIABLE}=FILE names it",
            LIBRARY = jar::LIBRARY,
            VARIABLE = jar::VARIABLE,
        ));
    }
    (!lines.is_empty()).then(|| {
        format!("this machine lacks, for the Pub/Sub emulator that the tests run against,\n  {}", lines.join("\n  "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_the_way_to_get_it() {
        assert_eq!(missing(true, true), None);
        let text = missing(false, false).unwrap();
        for part in ["default-jre-headless", "gcloud components install pubsub-emulator", jar::VARIABLE] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!missing(true, false).unwrap().contains("java 11"));
    }
}
