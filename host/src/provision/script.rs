//! All of it as a script for a shell: what would be made, and the roles that everybody needs. Pure.

use super::commands;
use super::model::Wanted;
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
    let of = |who: Who, on_subscriptions: bool| {
        grants.iter().filter(move |grant| grant.who == who && grant.on.contains("/subscriptions/") == on_subscriptions)
    };
    script.title("Who is who");
    for line in &roles::identities(wanted, worker) {
        script.line(line);
    }
    script.grants(
        "Roles of whoever runs this; somebody who administers the project grants them",
        of(Who::Provisioner, false),
    );

    let kinds = [("dataset", "Datasets"), ("table", "Tables"), ("topic", "Topics"), ("subscription", "Subscriptions")];
    for (kind, title) in kinds {
        if kind == "subscription" {
            let title =
                "Roles of Pub/Sub itself, before its subscriptions: without them none that writes bronze can be made";
            script.grants(title, of(Who::ServiceAgent, false));
        }
        let resources: Vec<_> = wanted.resources().filter(|resource| resource.kind() == kind).collect();
        if !resources.is_empty() {
            script.title(title);
        }
        for resource in &resources {
            script.line(&commands::create(resource).command);
        }
    }
    script.grants("Roles of Pub/Sub itself, on the subscriptions", of(Who::ServiceAgent, true));

    script.grants("Roles of the worker", of(Who::Worker, false).chain(of(Who::Worker, true)));
    if let Some(narrower) = roles::narrower(wanted) {
        script.line(
            "# Or, in the place of roles/bigquery.dataEditor, no more than it uses: make this role once, and grant",
        );
        script.line("# --role=projects/PROJECT/roles/preflightWriter on the same tables.");
        script.line(&format!("# {narrower}"));
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
