//! The plan of a run whose rows go to staging tables first.

use crate::config::{Config, TierConfig, Write};
use crate::ledger::Staged;
use crate::pipeline::plan::{HostTable, Plan};
use crate::reject_files::RejectFiles;
use crate::warehouse::{Encoding, Layout, Replaced, Tier, staging_name};
use std::sync::Arc;

/// The same plan with staging tables in the place of those that are replaced, and what is staged.
pub(super) fn staged(plan: &Plan, config: &Config, run: &str) -> (Plan, Staged) {
    let mut staged = Staged::new(run);
    let mut plan = Plan::clone(plan);
    if let Some(layout) = stage(&mut staged, Tier::Silver, Some(&config.silver.tier), &plan.silver.layout) {
        plan.silver.layout = layout;
    }
    let mut host = |tier, config: Option<&TierConfig>, table: &mut Option<HostTable>| {
        if let Some(table) = table
            && let Some(layout) = stage(&mut staged, tier, config, &table.layout)
        {
            table.layout = layout;
        }
    };
    host(Tier::Bronze, config.bronze.as_ref(), &mut plan.bronze);
    host(Tier::Quarantine, config.quarantine.table.as_ref(), &mut plan.quarantine);
    if let Some(files) = &config.quarantine.files {
        let header = config.source.format().header().filter(|_| files.header);
        let header = header.map_or_else(String::new, |header| header + "\n");
        staged.files = Some(RejectFiles::new(files, &header));
        staged.add(Tier::Rejects);
        let table = staged.file().map_or_else(String::new, |file| file.to_string_lossy().into_owned());
        let layout = Layout { table, columns: Vec::new(), encoding: Encoding::Lines, upsert: None };
        plan.rejects = Some(Arc::new(layout));
    }
    (plan, staged)
}

/// The layout of the staging table of a target, if that is replaced.
fn stage(staged: &mut Staged, tier: Tier, config: Option<&TierConfig>, layout: &Layout) -> Option<Arc<Layout>> {
    config.filter(|tier| tier.write == Write::Replace)?;
    let staging = staging_name(&layout.table, &staged.publication.run);
    let replaced = Replaced { table: layout.table.clone(), staging: staging.clone(), columns: layout.columns.clone() };
    staged.publication.tables.push(replaced);
    staged.add(tier);
    Some(Arc::new(Layout { table: staging, ..layout.clone() }))
}
