//! Runs that replace what tables have, files of rejects, and how many rejects there may be.

use super::check::Check;
use crate::config::raw::{RawMaxRejects, RawQuarantine, RawRejectFiles, RawTier};
use crate::config::{MaxRejects, QuarantineConfig, RejectFilesConfig, SourceConfig, TierConfig, Write};
use std::path::Path;

const FILES: &str = "quarantine.files";

impl Check {
    pub(super) fn quarantine(&mut self, raw: RawQuarantine) -> Option<QuarantineConfig> {
        let has_files = raw.files.is_some();
        let files = raw.files.and_then(|files| self.reject_files(files));
        let Some(table) = raw.table else {
            if !has_files {
                return self.refuse("quarantine", "give table, files, or both: rejected events must go somewhere");
            }
            for (key, given) in [
                ("create", raw.create.is_some()),
                ("write", raw.write.is_some()),
                ("partition_by", raw.partition_by.is_some()),
                ("cluster_by", !raw.cluster_by.is_empty()),
                ("description", raw.description.is_some()),
            ] {
                if given {
                    self.refuse::<()>(
                        &format!("quarantine.{key}"),
                        "is said of a table, and quarantine.table is missing",
                    );
                }
            }
            return Some(QuarantineConfig { table: None, files: Some(files?) });
        };
        let RawQuarantine { create, write, partition_by, cluster_by, description, .. } = raw;
        let table = RawTier { table, create, write, partition_by, cluster_by, description };
        let table = self.tier("quarantine", table)?;
        let files = if has_files { Some(files?) } else { None };
        Some(QuarantineConfig { table: Some(table), files })
    }

    fn reject_files(&mut self, raw: RawRejectFiles) -> Option<RejectFilesConfig> {
        let key = format!("{FILES}.path");
        self.path(&key, &raw.path);
        if raw.path.ends_with('/') || Path::new(&raw.path).file_name().is_none() {
            let what = format!("{:?} is no beginning of a file name: as in \"rejected/orders\"", raw.path);
            return self.refuse(&key, what);
        }
        let suffix = raw.suffix.unwrap_or_else(|| ".csv".to_owned());
        if suffix.contains(['/', '\0']) {
            return self.refuse(&format!("{FILES}.suffix"), format!("{suffix:?} is no end of a file name"));
        }
        Some(RejectFilesConfig { path: raw.path.into(), header: raw.header, suffix })
    }

    pub(super) fn late_data(&mut self, raw: RawTier) -> Option<TierConfig> {
        if raw.write.as_deref().is_some_and(|write| write != "append") {
            self.refuse::<()>("late_data.write", "late events are always appended: leave it out");
        }
        self.tier("late_data", raw)
    }

    pub(super) fn max_rejects(&mut self, raw: &RawMaxRejects, source: Option<&SourceConfig>) -> Option<MaxRejects> {
        const KEY: &str = "run.max_rejects";
        let bound = match raw {
            RawMaxRejects::Events(events) => MaxRejects::Events(*events),
            RawMaxRejects::Text(text) => text.parse().map_err(|what: String| self.refuse::<()>(KEY, what)).ok()?,
        };
        if let Some(what) = source.and_then(|source| bound.unfit(source)) {
            return self.refuse(KEY, what);
        }
        Some(bound)
    }

    /// What replaces something needs a source with an end, and silver is part of it.
    pub(super) fn replacing(
        &mut self,
        source: Option<&SourceConfig>,
        tiers: [(&str, Option<&TierConfig>); 4],
        quarantine: Option<&QuarantineConfig>,
        windowed: bool,
    ) {
        let is_one = |tier: Option<&TierConfig>| tier.is_some_and(|tier| tier.write == Write::Replace);
        let silver = is_one(tiers[1].1);
        let replaced = tiers.iter().filter(|(name, tier)| *name != "late_data" && is_one(*tier));
        let replaced: Vec<String> = replaced.map(|(name, _)| format!("{name}.write")).collect();
        if let Some(source) = source
            && !source.is_bounded()
        {
            for key in &replaced {
                let what = "\"replace\" publishes at the end of the source, and a subscription has none: read a file or standard \
                            input, or write \"append\"";
                self.refuse::<()>(key, what);
            }
        }
        // That silver is wrong is told already.
        if tiers[1].1.is_some() && !silver {
            for key in &replaced {
                let what = "\"replace\" needs silver.write = \"replace\", too: what is rejected or read belongs to the rows that \
                            are accepted";
                self.refuse::<()>(key, what);
            }
            if quarantine.is_some_and(|quarantine| quarantine.files.is_some()) {
                let what =
                    "files are published by a run that replaces: write silver.write = \"replace\", or take a table";
                self.refuse::<()>(FILES, what);
            }
        }
        if quarantine.and_then(|quarantine| quarantine.files.as_ref()).is_some_and(|files| files.header)
            && source.is_some_and(|source| source.format().header().is_none())
        {
            let what =
                "the header is that of source.file.csv.columns, and there is none: name the columns, or leave it out";
            self.refuse::<()>(&format!("{FILES}.header"), what);
        }
        if silver && windowed {
            let what = "\"replace\" and aggregates cannot go together: windows would count rows that were replaced. Measure the \
                        published table by SQL, with a view, or write \"append\"";
            self.refuse::<()>("silver.write", what);
        }
    }
}

impl MaxRejects {
    /// Why a source cannot have such a bound.
    pub fn unfit(self, source: &SourceConfig) -> Option<&'static str> {
        (matches!(self, Self::Share(_)) && !source.is_bounded()).then_some(
            "a percentage is known at the end of the source, and a subscription has none: give a number of events",
        )
    }
}
