//! `preflight rules stage`.

use super::{StoreArgs, broken, now};
use crate::cli::operator::operator;
use crate::cli::{Ended, component, output};
use crate::rules::{Limits, load};
use anyhow::anyhow;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct StageArgs {
    /// The component
    component: PathBuf,
    /// Fixture files (NDJSON), or directories of them: what the component must hold to, here and whenever a worker
    /// takes it
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    fixtures: Vec<PathBuf>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn stage(args: &StageArgs) -> Ended {
    let shown = args.component.display();
    let files = match component::read_fixtures(&args.fixtures) {
        Ok(files) => files,
        Err(error) => return Ended::Refused(error),
    };
    let bytes = match load::read_bounded(&args.component, Limits::default().component) {
        Ok(bytes) => bytes,
        Err(error) => return Ended::Refused(anyhow!("{shown}: {error}")),
    };
    let judged = component::load_bytes(&bytes, &shown).and_then(|(sandbox, rule)| {
        let rule = Arc::new(rule);
        Ok((component::judge(sandbox, &rule, &files)?, rule))
    });
    let (judged, rule) = match judged {
        Ok(judged) => judged,
        Err(error) => return Ended::Refused(error),
    };
    if judged.failed > 0 {
        if args.store.json {
            output::json(
                &json!({ "staged": false, "rule": rule.label, "digest": rule.digest, "judged": judged.json() }),
            );
        } else {
            output::print(&format!("{}{shown} does not hold to its fixtures: nothing is staged\n", judged.text()));
        }
        return Ended::Failed;
    }
    let fixtures: String = files.iter().map(|file| file.text.trim_end().to_owned() + "\n").collect();
    let store = args.store.store();
    if let Err(error) = store.stage(&bytes, &fixtures, &rule.label, &operator(), &args.why, now()) {
        return broken(error);
    }
    if args.store.json {
        let versions = &rule.manifest.event_versions;
        output::json(&json!({
            "staged": true, "rule": rule.label, "digest": rule.digest, "event_versions": versions, "judged": judged.json()
        }));
    } else {
        output::print(&format!(
            "{}\n{} for event version {}, {} fixtures hold; staged in {}\n",
            rule.digest,
            rule.label,
            rule.manifest.event_versions.join(", "),
            judged.passed,
            store.directory().display()
        ));
    }
    Ended::Done
}
