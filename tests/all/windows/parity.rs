//! Parity with Apache Beam: the same scripts through Beam's `TestStream` and through `preflight simulate`, pane by pane.
//!
//! Beam says nothing of the order of panes of different windows, so those of a window are compared, in order. It has no
//! retractions: where a session was merged into another, and panes are discarding, ours begins with what was taken back.

use super::said::Said;
use preflight_tests::beam::{self, Late, Pane, Script, Window};
use preflight_tests::{Ended, Pipeline, paths};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const PIPELINE: &str = r#"
name = "parity"
[source.stdin]
[rules.components]
"1" = RULE
[warehouse.sqlite]
path = "warehouse.db"
[silver]
table = "silver.orders"
create = "if_needed"
[quarantine]
table = "quarantine.rejected"
create = "if_needed"
[late_data]
table = "quarantine.late"
create = "if_needed"
"#;

#[test]
fn panes_and_late_events_are_those_of_apache_beam() {
    let scripts = beam::scripts();
    assert!(scripts.len() >= 60, "only {} scripts", scripts.len());
    let ours: Vec<Ended> = scripts.iter().map(simulate).collect();
    let differences: Vec<String> =
        scripts.iter().zip(&ours).filter_map(|(script, ours)| difference(script, ours)).collect();
    assert!(
        differences.is_empty(),
        "{} of {} scripts differ:\n\n{}",
        differences.len(),
        scripts.len(),
        differences.join("\n")
    );

    // A script that never gets there compares nothing.
    let mut timings: BTreeMap<(&str, &str, String), usize> = BTreeMap::new();
    for (script, ours) in scripts.iter().zip(&ours) {
        let windows = script.name.split('-').nth(1).unwrap();
        let mode = if script.accumulating { "accumulating" } else { "discarding" };
        for pane in Said::read(&ours.stdout).unwrap().panes {
            *timings.entry((windows, mode, pane.timing)).or_default() += 1;
        }
    }
    let kinds = ["fixed", "sliding", "session"].into_iter().flat_map(|windows| {
        let retracted = (windows == "session").then_some("RETRACTED");
        ["EARLY", "ON_TIME", "LATE"].into_iter().chain(retracted).map(move |timing| (windows, timing))
    });
    for (windows, timing) in kinds {
        for mode in ["accumulating", "discarding"] {
            let panes = timings.get(&(windows, mode, timing.to_owned())).copied().unwrap_or_default();
            assert!(panes >= 5, "only {panes} panes {timing} of {windows} windows, {mode}: {timings:?}");
        }
    }
}

/// What a script comes to differently, with everything needed to see why.
fn difference(script: &Script, ours: &Ended) -> Option<String> {
    let problems = match (ours.code, Said::read(&ours.stdout)) {
        (Some(0), Ok(said)) => problems(script, &said),
        (_, Ok(_)) => vec![format!("it failed: {}", ours.stderr)],
        (_, Err(why)) => vec![why],
    };
    if problems.is_empty() {
        return None;
    }
    let mut text = format!("=== {}\n{}--- script\n{}\n", script.name, script.aggregate, script.script.join("\n"));
    text += "--- panes of Beam\n";
    for pane in &script.panes {
        writeln!(text, "{}", shown(pane)).unwrap();
    }
    write!(text, "dropped: {:?}\n--- ours\n{}--- differences\n{}\n", script.dropped, ours.stdout, problems.join("\n"))
        .unwrap();
    Some(text)
}

fn simulate(script: &Script) -> Ended {
    let rule = paths::rule("lumen-loom-orders").display().to_string();
    let file = PIPELINE.replace("RULE", &format!("{rule:?}")) + &script.aggregate;
    let pipeline = Pipeline::with_file(&file, script.script.join("\n")).warm();
    let mut command = pipeline.command("simulate");
    Ended::from_output(command.arg(pipeline.input()).output().expect("preflight can be started"))
}

fn problems(script: &Script, said: &Said) -> Vec<String> {
    let mut problems = Vec::new();
    let ours = match as_beam(said, script.accumulating) {
        Ok(panes) => by_window(&panes),
        Err(why) => return vec![why],
    };
    let theirs = by_window(&script.panes);
    let places: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    for place in places {
        let of = |panes: &BTreeMap<Place, Vec<String>>| panes.get(place).map_or_else(String::new, |all| all.join(", "));
        let (ours, theirs) = (of(&ours), of(&theirs));
        if ours != theirs {
            problems.push(format!("{} {}: Beam has [{theirs}], we have [{ours}]", place.0, span(&place.1)));
        }
    }
    let sorted = |late: &[Late]| {
        let mut late = late.to_vec();
        late.sort_unstable();
        late
    };
    let (ours, theirs) = (sorted(&said.late), sorted(&script.dropped));
    if ours != theirs {
        problems.push(format!("late events: Beam has dropped {theirs:?}, we have {ours:?}"));
    }
    problems
}

/// The key as text, and the window.
type Place = (String, Window);

fn place(pane: &Pane) -> Place {
    (format!("{:?}", pane.key), pane.window.clone())
}

fn by_window(panes: &[Pane]) -> BTreeMap<Place, Vec<String>> {
    let mut windows: BTreeMap<Place, Vec<String>> = BTreeMap::new();
    for pane in panes {
        let what = format!("{} {} {} orders {:#b}", pane.index, pane.timing, pane.orders, pane.revenue);
        windows.entry(place(pane)).or_default().push(what);
    }
    windows
}

/// Our panes as Beam has them: without those that take back, and without what was taken back. What takes back must be right.
fn as_beam(said: &Said, accumulating: bool) -> Result<Vec<Pane>, String> {
    let mut panes = Vec::new();
    // Windows that stand, with their panes and what these say together.
    let mut standing: BTreeMap<Place, (u32, i64, i64)> = BTreeMap::new();
    // What was taken back for the next pane.
    let mut taken: Vec<(Place, i64, i64)> = Vec::new();
    for pane in &said.panes {
        let here = place(pane);
        if pane.timing == "RETRACTED" {
            match standing.remove(&here) {
                Some((fired, orders, revenue)) if fired == pane.index => taken.push((here, orders, revenue)),
                other => return Err(format!("takes back what did not stand ({other:?}): {}", shown(pane))),
            }
            continue;
        }
        let mut as_beam = pane.clone();
        for ((key, window), orders, revenue) in taken.drain(..) {
            let inside = window.start >= here.1.start && window.end <= here.1.end;
            if key != here.0 || !inside {
                return Err(format!("what was taken back, {}, is not of this pane: {}", span(&window), shown(pane)));
            }
            if !accumulating {
                as_beam.orders -= orders;
                as_beam.revenue -= revenue;
            }
        }
        let (fired, orders, revenue) = standing.entry(here).or_default();
        *fired += 1;
        *orders += pane.orders;
        *revenue += pane.revenue;
        panes.push(as_beam);
    }
    if taken.is_empty() { Ok(panes) } else { Err(format!("taken back, and nothing in its place: {taken:?}")) }
}

fn shown(pane: &Pane) -> String {
    let Pane { key, index, timing, orders, revenue, .. } = pane;
    format!("{} {key:?} {index} {timing} orders {orders} revenue {revenue} = {revenue:#b}", span(&pane.window))
}

/// A window without what is the same in all of them.
fn span(window: &Window) -> String {
    let time = |text: &str| text.get(11..23).unwrap_or(text).to_owned();
    format!("[{}, {})", time(&window.start), time(&window.end))
}
