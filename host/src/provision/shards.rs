//! Several workers: one filtered subscription and one overlay of the pipeline file for each.
//!
//! Publishers set the attribute `shard` of each message to a number below the count of shards, as text, chosen by the key
//! whose events belong together (`hash(key) % count`): then one worker sees all events of a key, in order. Pub/Sub
//! acknowledges by itself what no filter matches, so one more subscription takes the rest: what has no shard, or another. Its
//! filter names every shard, and how long a filter may be sets how many shards there can be.

use crate::config::Config;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// The attribute that says which worker a message is for.
pub const ATTRIBUTE: &str = "shard";
/// More shards than this are refused: Pub/Sub takes a filter of 256 bytes, and that of the rest names them all.
pub const MAX_SHARDS: u32 = 9;
/// A pipeline's name has no more letters.
const MAX_NAME: usize = 63;

/// One worker's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Its number as publishers write it, or `rest-of-N`.
    pub label: String,
    /// The name of its pipeline.
    pub pipeline: String,
    /// The full name of its subscription.
    pub subscription: String,
    /// Which messages it gets.
    pub filter: String,
}

/// The parts of `count` workers, and last the one for the rest.
pub fn plan(subscription: &str, pipeline: &str, count: NonZeroU32) -> Result<Vec<Shard>, String> {
    if count.get() > MAX_SHARDS {
        return Err(format!(
            "{count} shards are too many: at most {MAX_SHARDS}. One more subscription must take what is for no shard, and Pub/Sub \
             takes no filter that names more. Give each worker more cores (`run.threads`) instead"
        ));
    }
    let numbered = (0..count.get()).map(|number| (number.to_string(), filter(number)));
    let parts = numbered.chain([(format!("rest-of-{count}"), rest(count))]);
    parts
        .map(|(label, filter)| {
            let name = format!("{pipeline}-shard-{label}");
            if name.len() > MAX_NAME {
                return Err(format!("{name:?} would be too long a name for a shard's pipeline: at most {MAX_NAME}"));
            }
            Ok(Shard { pipeline: name, subscription: format!("{subscription}-shard-{label}"), filter, label })
        })
        .collect()
}

/// What publishers must know, and what becomes of the subscription of all messages.
pub fn note(subscription: &str, count: NonZeroU32) -> String {
    format!(
        "publishers set the attribute `{ATTRIBUTE}` of each message to \"0\" … \"{}\", by a hash of the key whose events \
         belong together. {subscription} gets every message, too, if it is there: delete it once the shards do its work",
        count.get() - 1
    )
}

fn filter(number: u32) -> String {
    format!("attributes.{ATTRIBUTE} = \"{number}\"")
}

/// All that no shard gets: what has no shard, and what has one that is no worker's.
fn rest(count: NonZeroU32) -> String {
    let all: Vec<String> = (0..count.get()).map(filter).collect();
    format!("NOT ({})", all.join(" OR "))
}

/// An overlay for the pipeline file of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// Where it is written.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// The overlays of all workers, in a directory. Each worker has a ledger of its own, beside the one of the pipeline file.
pub fn overlays(config: &Config, file: &Path, directory: &Path, shards: &[Shard]) -> Vec<Overlay> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let overlay = |shard: &Shard| {
        let label = &shard.label;
        let name = format!("{stem}.shard-{label}.toml");
        let ledger = beside(&config.ledger, label, directory);
        let path = directory.join(&name);
        let mut text = format!(
            "# Laid over {}: `preflight run {} --with {}`.\n# Written by `preflight provision --shards`. Its messages: {}\n",
            file.file_name().unwrap_or_default().to_string_lossy(),
            file.display(),
            path.display(),
            shard.filter
        );
        write!(
            text,
            "name = {:?}\n\n[source.pubsub]\nsubscription = {:?}\n\n[ledger]\npath = {}\n",
            shard.pipeline,
            shard.subscription,
            toml::Value::String(ledger.to_string_lossy().into_owned())
        )
        .expect("a string takes any text");
        Overlay { path, text }
    };
    shards.iter().map(overlay).collect()
}

/// A ledger beside another, as a file in `directory` names it: paths in a pipeline file are relative to it.
fn beside(ledger: &Path, label: &str, directory: &Path) -> PathBuf {
    let mut path = ledger.as_os_str().to_owned();
    path.push(format!("-shard-{label}"));
    let path = PathBuf::from(path);
    match path.strip_prefix(directory) {
        Ok(inside) => inside.to_owned(),
        Err(_) => std::path::absolute(&path).unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: u32) -> Vec<Shard> {
        plan("projects/p/subscriptions/s", "bookings", NonZeroU32::new(count).unwrap()).unwrap()
    }

    #[test]
    fn every_message_has_a_subscription() {
        let shards = some(2);
        let filters: Vec<&str> = shards.iter().map(|shard| shard.filter.as_str()).collect();
        assert_eq!(
            filters,
            [
                "attributes.shard = \"0\"",
                "attributes.shard = \"1\"",
                "NOT (attributes.shard = \"0\" OR attributes.shard = \"1\")",
            ]
        );
        assert_eq!(shards[1].subscription, "projects/p/subscriptions/s-shard-1");
        assert_eq!(shards[2].pipeline, "bookings-shard-rest-of-2");
    }

    /// Once the rest of many shards was what has no shard, and a message of shard 37 was in no subscription: it was lost.
    #[test]
    fn the_rest_of_as_many_shards_as_there_can_be_names_them_all_in_256_bytes() {
        for count in 1..=MAX_SHARDS {
            let shards = some(count);
            let (rest, numbered) = shards.split_last().unwrap();
            let others: Vec<&str> = numbered.iter().map(|shard| shard.filter.as_str()).collect();
            assert_eq!(rest.filter, format!("NOT ({})", others.join(" OR ")));
            assert!(rest.filter.len() <= 256, "{count}: {}", rest.filter.len());
        }
        assert!(rest(NonZeroU32::new(MAX_SHARDS + 1).unwrap()).len() > 256, "one more would fit");
    }

    #[test]
    fn too_many_shards_and_too_long_names_are_refused() {
        let many = plan("s", "b", NonZeroU32::new(10).unwrap()).unwrap_err();
        assert!(many.contains("at most 9"), "{many}");
        let long = plan("s", &"b".repeat(50), NonZeroU32::new(2).unwrap()).unwrap_err();
        assert!(long.contains("at most 63"), "{long}");
    }

    #[test]
    fn ledgers_differ_and_are_told_as_the_overlay_reads_them() {
        let of = |ledger: &str| beside(Path::new(ledger), "0", Path::new("conf"));
        assert_eq!(of("conf/data/ledger"), Path::new("data/ledger-shard-0"));
        assert_eq!(of("/var/lib/ledger"), Path::new("/var/lib/ledger-shard-0"));
        assert!(of(".preflight/bookings").is_absolute());
        assert!(of(".preflight/bookings").ends_with(".preflight/bookings-shard-0"));
    }
}
