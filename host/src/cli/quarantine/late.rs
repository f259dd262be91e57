//! What is said beforehand of events that a replay brings too late for their windows.

use super::Whose;
use crate::pipeline::replay::forecast::Late;
use crate::time::format_micros;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Events that will be late for closed windows of an aggregate.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ExpectedLate {
    aggregate: String,
    events: u64,
    /// The command that measures these windows anew.
    rebuild: String,
}

/// What of a replay will be late, with the commands that bring it into the aggregates.
pub(super) fn expected(whose: &Whose, late: &BTreeMap<Arc<str>, Late>) -> Vec<ExpectedLate> {
    let one = |(aggregate, Late { events, range }): (&Arc<str>, &Late)| {
        let range = format!("{}..{}", format_micros(range.start), format_micros(range.end));
        let with = whose.pipeline.overlays.iter().map(|overlay| ["--with".into(), shown(overlay)]);
        let set = whose.pipeline.settings.iter().map(|setting| ["--set".into(), setting.into()]);
        let words: [Cow<'_, str>; 4] =
            ["preflight".into(), "rebuild".into(), shown(&whose.file), aggregate.as_ref().into()];
        let words = words.into_iter().chain(with.chain(set).flatten());
        let words = words.chain(["--from".into(), "silver".into(), "--range".into(), range.into()]);
        let rebuild = words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ");
        ExpectedLate { aggregate: aggregate.to_string(), events: *events, rebuild }
    };
    late.iter().map(one).collect()
}

fn shown(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// For a person.
pub(super) fn as_text(expected: &[ExpectedLate]) -> String {
    let one = |ExpectedLate { aggregate, events, rebuild }: &ExpectedLate| {
        let (are, they) = if *events == 1 { ("event is", "it comes") } else { ("events are", "they come") };
        format!(
            "{events} {are} late for windows of {aggregate} that are closed: {they} to silver and to the late table, and not into \
             {aggregate}. Once the replay is done, this brings them there:\n  {rebuild}"
        )
    };
    expected.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::PipelineArgs;
    use crate::window::Span;

    #[test]
    fn the_command_is_one_that_a_shell_takes() {
        let pipeline = PipelineArgs {
            overlays: vec!["cloud.toml".into()],
            settings: vec!["name=it's".into(), "batch.max_age=1 s".into()],
        };
        let whose = Whose { file: "my pipeline.toml".into(), pipeline };
        let late = Late { events: 3, range: Span { start: 0, end: 60_000_000 } };
        let expected = expected(&whose, &[("per_minute".into(), late)].into());
        assert_eq!(
            expected[0].rebuild,
            "preflight rebuild 'my pipeline.toml' per_minute --with cloud.toml --set 'name=it'\\''s' --set 'batch.max_age=1 s' \
             --from silver --range 1970-01-01T00:00:00.000000Z..1970-01-01T00:01:00.000000Z"
        );
        let text = as_text(&expected);
        assert!(text.starts_with("3 events are late for windows of per_minute") && text.ends_with('Z'), "{text}");
    }
}
