//! What makes two runs the same job: everything that decides which rows come of the source.

use crate::config::{Config, SourceConfig};
use crate::digest::Digest;
use crate::pipeline::plan::Plan;
use crate::rules::RuleSet;
use crate::source;
use crate::warehouse::Tier;

/// A digest of it. Another version of Preflight may judge in another way, so it is a part of it.
pub(super) fn digest(config: &Config, rules: &RuleSet, plan: &Plan) -> String {
    let served: Vec<_> = rules.served().map(|(version, served)| (version, served.rule.digest)).collect();
    let judging =
        (served, rules.revision(), &config.rules.routing, &config.rules.canary_by, &config.limits, &config.dedup);
    let layouts = Tier::JUDGED.map(|tier| plan.layout(tier));
    let tables = (layouts, &config.bronze, &config.silver, &config.quarantine, config.max_payload, config.max_row);
    let source = (&config.source, input(&config.source));
    let all = format!("{:?}", (env!("CARGO_PKG_VERSION"), source, judging, tables));
    Digest::of(all.as_bytes()).to_string()
}

/// What tells an input from others that stand in its place later: half of one and half of another is neither. None where there is
/// nothing to tell.
pub(super) fn input(source: &SourceConfig) -> Option<String> {
    let SourceConfig::File { path, .. } = source else { return None };
    // What cannot be found is told when it is opened.
    let files = source::files(path).unwrap_or_default();
    let files = files.iter().filter_map(|path| {
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((path, metadata.len(), metadata.modified().ok()))
    });
    let files: Vec<_> = files.collect();
    (!files.is_empty()).then(|| format!("{files:?}"))
}
