//! All of it as a script for a shell: what would be made, and the roles that everybody needs, by who may run it. Pure.

use super::commands;
use super::model::{Purpose, Resource, Subscription, Wanted};
use super::roles::{self, Grant, Who};

/// The script. It makes from nothing what `provision` makes; a second run of it would fail at the first topic that is there.
pub fn script(pipeline: &str, wanted: &Wanted, worker: Option<&str>) -> String {
    let mut script = Script(String::new());
    script.line(&format!("# {pipeline} on Google Cloud, as commands. Nothing was asked, and nothing was changed."));
    for note in &wanted.notes {
        script.line(&format!("# note: {note}"));
    }
    if wanted.is_empty() {
        return script.0;
    }
    let grants = roles::roles(wanted);
    let of = |who: Who| grants.iter().filter(move |grant| grant.who == who);
    script.line(
        "# Who administers the projects runs all of it. Else two take turns: roles are granted by whoever may call",
    );
    script.line("# setIamPolicy, everything else is made by the provisioner, who need not.");
    script.title("Who is who, for both; who runs this for another provisioner writes that one's name here");
    for line in &roles::identities(wanted, worker) {
        script.line(line);
    }
    script.grants("1. An administrator: roles of the provisioner", of(Who::Provisioner));

    let writes = |resource: &Resource| {
        matches!(resource, Resource::Subscription(Subscription { purpose: Purpose::Bronze { .. }, .. }))
    };
    let (last, first): (Vec<_>, Vec<_>) = wanted.resources().partition(writes);
    let kinds = ["dataset", "table", "view", "topic", "subscription"];
    for kind in kinds {
        script.resources(&format!("2. The provisioner: {kind}s"), first.iter().filter(|first| first.kind() == kind));
    }
    script.grants("3. An administrator: roles of Pub/Sub itself", of(Who::ServiceAgent));
    script.grants("3. An administrator: roles of the worker", of(Who::Worker));
    if let Some(narrower) = roles::narrower(wanted) {
        script.line(
            "# Or, in the place of roles/bigquery.dataEditor, no more than it uses: make this role once, and grant",
        );
        script.line("# --role=projects/PROJECT/roles/preflightWriter on the same tables.");
        script.line(&format!("# {narrower}"));
    }
    let title = "4. The provisioner: subscriptions that write to BigQuery; until Pub/Sub may write, none can be made";
    script.resources(title, last.iter());
    script.title("An identity that only looks for drift (`preflight provision` as a job) needs no more than this");
    for command in roles::looker(wanted) {
        script.line(&format!("# {command}"));
    }
    script.0
}

struct Script(String);

impl Script {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn title(&mut self, title: &str) {
        self.line(&format!("\n# {title}"));
    }

    fn resources<'a>(&mut self, title: &str, resources: impl Iterator<Item = &'a Resource>) {
        for (index, resource) in resources.enumerate() {
            if index == 0 {
                self.title(title);
            }
            self.line(&commands::create(resource).command);
        }
    }

    fn grants<'a>(&mut self, title: &str, grants: impl Iterator<Item = &'a Grant>) {
        let mut why = "";
        for (index, grant) in grants.enumerate() {
            if index == 0 {
                self.title(title);
            }
            if grant.why != why {
                why = grant.why;
                self.line(&format!("#   {why}"));
            }
            self.line(&grant.command);
        }
    }
}
