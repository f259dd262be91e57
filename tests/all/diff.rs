//! `preflight diff`: what would change if another rule judged the same events.

use preflight::digest::Digest;
use preflight_tests::booking::envelope;
use preflight_tests::pipeline::preflight;
use preflight_tests::{Booking, Ended, Pipeline, bookings, paths};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn v1() -> PathBuf {
    paths::rule("offvia-booking")
}

fn v2() -> PathBuf {
    paths::rule("offvia-booking-v2")
}

fn hostile() -> PathBuf {
    paths::rule("hostile-rule")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A directory with `input.ndjson` in it.
fn input(lines: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("input.ndjson");
    std::fs::write(&path, lines).unwrap();
    (directory, path)
}

fn diff(old: &Path, new: &Path, input: &Path, further: &[&str]) -> Ended {
    preflight([&["diff", text(old), text(new), "--input", text(input)], further].concat())
}

/// Compares two rules on these lines.
fn on(lines: impl AsRef<[u8]>, old: &Path, new: &Path, further: &[&str]) -> Ended {
    let (_directory, path) = input(lines);
    diff(old, new, &path, further)
}

/// Another build of the first booking rule, in which a text has become another of the same length.
fn rebuilt(directory: &Path, from: &str, to: &str) -> PathBuf {
    let mut component = std::fs::read(v1()).unwrap();
    let places: Vec<usize> =
        component.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes()).map(|(at, _)| at).collect();
    let [at] = places[..] else { panic!("{from} stands {} times in the rule", places.len()) };
    component[at..at + from.len()].copy_from_slice(to.as_bytes());
    let path = directory.join("rebuilt.wasm");
    std::fs::write(&path, component).unwrap();
    path
}

/// The kinds with their counts, as the report lists them.
fn kinds(report: &Value) -> Vec<(&str, u64)> {
    let differences = report["differences"].as_array().unwrap().iter();
    differences.map(|kind| (kind["kind"].as_str().unwrap(), kind["events"].as_u64().unwrap())).collect()
}

#[track_caller]
fn refused(ended: Ended, texts: &[&str]) {
    let ended = ended.expect(2);
    for text in texts {
        assert!(ended.stderr.contains(text), "{text:?} is not in: {}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
}

#[test]
fn the_same_rule_differs_nowhere() {
    let ended = on(bookings::lines(500), &v1(), &v1(), &[]).expect(0);
    assert!(ended.stdout.contains("500 events judged by both: 500 the same, 0 different"), "{}", ended.stdout);
    assert!(ended.stdout.contains("old and new are the same component"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("warning"), "{}", ended.stdout);
}

/// Of 110 events ten are no JSON and twenty have a bad fare: of the others version 2 wants another fare.
#[test]
fn a_rule_for_another_version_rejects_what_was_accepted() {
    let ended = on(bookings::lines(110), &v1(), &v2(), &["--json"]).expect(3);
    let report = ended.json();
    assert_eq!(kinds(&report), [("accept→reject BUSINESS_RULE_VALIDATION", 80)]);
    assert_eq!([&report["judged"], &report["same"], &report["different"]], [110, 30, 80]);
    assert_eq!(report["skipped"], json!({ "not_whole": {}, "other_version": 0, "no_version": 0 }));
    assert_eq!(report["further"], 0);
    let tier = json!({ "name": "loyalty_tier", "type": "text", "nullable": true });
    assert_eq!(report["columns"], json!([{ "change": "added", "new": tier }]));
    let old = &report["old"];
    assert_eq!((&old["rule"], &old["event_versions"]), (&json!("offvia-booking@0.1.0"), &json!(["1"])));
    assert!(old["digest"].as_str().unwrap().starts_with("sha256:"), "{old}");
    assert_eq!(report["new"]["rule"], "offvia-booking-v2@0.1.0");
    let samples = report["differences"][0]["samples"].as_array().unwrap();
    let ids: Vec<&Value> = samples.iter().map(|sample| &sample["message_id"]).collect();
    assert_eq!(ids, ["input.ndjson:1", "input.ndjson:2", "input.ndjson:3"]);
    assert!(samples[0]["old"].as_str().unwrap().starts_with("accept {\"booking_id\":\"BK-0\""), "{}", samples[0]);
    let new = "reject BUSINESS_RULE_VALIDATION: Invalid fare: fare must be an object, found a string";
    assert_eq!(samples[0]["new"], new);
}

#[test]
fn the_other_way_round_rejected_events_are_accepted() {
    let ended = on(bookings::lines(110), &v2(), &v1(), &[]).expect(3);
    for text in [
        "       80  reject BUSINESS_RULE_VALIDATION→accept",
        "warning: the columns differ: removed loyalty_tier STRING",
        "           input.ndjson:1\n             old  reject BUSINESS_RULE_VALIDATION: Invalid fare",
        "             new  accept {\"booking_id\":\"BK-0\"",
    ] {
        assert!(ended.stdout.contains(text), "{text:?} is not in:\n{}", ended.stdout);
    }
}

#[test]
fn a_column_that_differs_shows_both_values() {
    let (directory, path) = input(bookings::lines(22));
    let rebuilt = rebuilt(directory.path(), "CONFIRMED", "UNCERTAIN");
    let report = diff(&v1(), &rebuilt, &path, &["--json", "--samples", "1"]).expect(3).json();
    assert_eq!(kinds(&report), [("column booking_status", 16)]);
    let sample = json!({ "message_id": "input.ndjson:1", "old": "CONFIRMED", "new": "UNCERTAIN" });
    assert_eq!(report["differences"][0]["samples"], json!([sample]));
    assert_eq!(report["columns"], json!([]));
    let ended = diff(&v1(), &rebuilt, &path, &["--samples", "1"]).expect(3);
    assert!(ended.stdout.contains("old  \"CONFIRMED\"\n             new  \"UNCERTAIN\"\n"), "{}", ended.stdout);
}

#[test]
fn a_rejection_at_another_stage_is_a_difference_and_another_reason_is_none() {
    let (directory, path) = input(bookings::lines(22));
    let stage = rebuilt(directory.path(), "BUSINESS_RULE_VALIDATION", "BUSINESS_RULE_VIOLATIONS");
    let report = diff(&v1(), &stage, &path, &["--json"]).expect(3).json();
    assert_eq!(kinds(&report), [("reject BUSINESS_RULE_VALIDATION→reject BUSINESS_RULE_VIOLATIONS", 4)]);
    let reason = rebuilt(directory.path(), "must be greater than zero", "must be bigger than zeros");
    diff(&v1(), &reason, &path, &[]).expect(0);
}

#[test]
fn the_most_frequent_kind_comes_first_and_samples_are_capped() {
    let lines = ["ok", "spin", "panic:boom", "stage:STRANGE", "ignore:3", "panic:bang"].join("\n");
    let report = on(&lines, &v1(), &hostile(), &["--json", "--samples", "1"]).expect(3).json();
    assert_eq!(
        kinds(&report),
        [
            ("new fault panic", 2),
            ("reject PARSE_JSON→accept", 1),
            ("reject PARSE_JSON→reject STRANGE", 1),
            ("reject→ignore", 1),
            ("new fault fuel", 1),
        ]
    );
    let samples = report["differences"][0]["samples"].as_array().unwrap();
    assert_eq!((samples.len(), &samples[0]["new"]), (1, &json!("fault panic: boom")));
    let none = on(&lines, &v1(), &hostile(), &["--json", "--samples", "0"]).expect(3).json();
    assert_eq!(kinds(&none), kinds(&report));
    assert_eq!(none["differences"][0]["samples"], json!([]));
    let gone = on(&lines, &hostile(), &v1(), &["--json"]).expect(3).json();
    assert_eq!(kinds(&gone)[0], ("fault panic gone", 2));
}

#[test]
fn a_long_verdict_is_clipped_in_samples() {
    let of = |further: &[&str]| on("reason:3000\n", &hostile(), &v1(), further).expect(3).stdout;
    let text = of(&[]);
    let line = text.lines().find(|line| line.contains("old  reject HOSTILE: ")).unwrap();
    assert!(line.len() < 500 && line.ends_with('…'), "{line}");
    let json: Value = serde_json::from_str(&of(&["--json"])).unwrap();
    let whole = json["differences"][0]["samples"][0]["old"].as_str().unwrap();
    assert!((900..=1_000).contains(&whole.len()) && whole.ends_with('…'), "{whole}");
}

#[test]
fn an_input_that_breaks_off_is_a_failure_at_run_time() {
    // It can be opened, and nothing can be read at its beginning.
    let ended = diff(&v1(), &v2(), Path::new("/proc/self/mem"), &[]).expect(1);
    assert!(ended.stderr.contains("cannot read /proc/self/mem"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn what_a_rule_says_cannot_act_upon_a_terminal() {
    let ended = on("panic:\u{1b}[2J\n", &v1(), &hostile(), &[]).expect(3);
    assert!(!ended.stdout.contains('\u{1b}'), "{:?}", ended.stdout);
    assert!(ended.stdout.contains("new  fault panic: \u{fffd}[2J"), "{}", ended.stdout);
}

/// Two events of version 1, one of 2, one of 3, one that does not say.
fn versions() -> String {
    let one = |attributes: &[(&str, &str)]| envelope(Booking::v1("BK-1").json(), attributes);
    let of = |version| one(&[("event_version", version)]);
    [of("1"), of("1"), of("2"), of("3"), one(&[])].concat()
}

fn skipped(report: &Value) -> (u64, u64, u64) {
    let count = |value: &Value| value.as_u64().unwrap();
    let skipped = &report["skipped"];
    (count(&report["judged"]), count(&skipped["other_version"]), count(&skipped["no_version"]))
}

#[test]
fn without_routing_every_event_is_judged() {
    let report = on(versions(), &v1(), &v1(), &["--format", "envelope", "--json"]).expect(0).json();
    assert_eq!(skipped(&report), (5, 0, 0));
}

#[test]
fn with_routing_only_versions_that_both_serve_are_judged() {
    let by = ["--format", "envelope", "--json", "--event-version-attribute", "event_version"];
    let with = |old: &Path, new: &Path, further: &[&str]| on(versions(), old, new, &[&by, further].concat());
    assert_eq!(skipped(&with(&v1(), &v1(), &[]).expect(0).json()), (2, 2, 1));
    assert_eq!(skipped(&with(&v1(), &v1(), &["--default", "1"]).expect(0).json()), (3, 2, 0));
    assert_eq!(skipped(&with(&v1(), &hostile(), &[]).expect(3).json()), (2, 2, 1));
    assert_eq!(skipped(&with(&hostile(), &hostile(), &[]).expect(0).json()), (3, 1, 1));
    assert_eq!(skipped(&with(&v1(), &v1(), &["--events", "3"]).expect(0).json()), (1, 3, 1));
    // What a version is judged by is for the asker to say, whatever the manifests serve.
    assert_eq!(skipped(&with(&v1(), &v2(), &["--events", "1"]).expect(3).json()), (2, 2, 1));
    refused(
        with(&v1(), &v2(), &[]),
        &["no event version is served by both rules", "offvia-booking-v2@0.1.0 serves 2", "--events"],
    );
}

#[test]
fn the_version_may_be_a_field_of_the_payload() {
    let lines: String =
        ["1", "2"].map(|version| Booking::v1("BK-1").and("schema", version).json() + "\n").concat() + "{}\n";
    let by = ["--json", "--event-version-field", "/schema", "--events", "2"];
    assert_eq!(skipped(&on(&lines, &v1(), &v1(), &by).expect(0).json()), (1, 1, 1));
}

#[test]
fn a_pipeline_file_gives_routing_format_and_limits() {
    let pipeline = Pipeline::offvia(versions());
    let (file, cache) = (pipeline.file(), format!("rules.cache={}", paths::scratch().join("code").display()));
    let by = ["--json", "--pipeline", text(&file), "--set", &cache];
    let with = |old: &Path, new: &Path, further: &[&str]| diff(old, new, &pipeline.input(), &[&by, further].concat());
    // The source of the pipeline file reads lines: no envelope has an attribute, and the default version is 1.
    assert_eq!(skipped(&with(&v1(), &v1(), &[]).expect(0).json()), (5, 0, 0));
    assert_eq!(skipped(&with(&v1(), &v1(), &["--format", "envelope"]).expect(0).json()), (3, 2, 0));
    let overlay = pipeline.directory().join("overlay.toml");
    std::fs::write(&overlay, "[source.stdin]\nformat = \"envelope\"\n").unwrap();
    let report = with(&v1(), &v1(), &["--with", text(&overlay)]).expect(0).json();
    assert_eq!(skipped(&report), (3, 2, 0));
    let report = with(&v1(), &v1(), &["--set", "limits.payload=100 B"]).expect(0).json();
    assert_eq!(report["skipped"]["not_whole"], json!({ "PAYLOAD_TOO_LARGE": 5 }));
    // With so little fuel both fault alike.
    with(&v1(), &hostile(), &["--format", "envelope"]).expect(3);
    let starved = ["--format", "envelope", "--set", "limits.fuel_base=1", "--set", "limits.fuel_per_byte=1"];
    with(&v1(), &hostile(), &starved).expect(0);
}

#[test]
fn what_a_source_refuses_is_skipped_and_counted() {
    let lines = format!("{}not an envelope\n[]\n", envelope(Booking::v1("BK-1").json(), &[]));
    let ended = on(&lines, &v1(), &v1(), &["--format", "envelope"]).expect(0);
    assert!(ended.stdout.contains("1 events judged by both: 1 the same"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 events skipped: not whole, PARSE_ENVELOPE"), "{}", ended.stdout);
}

#[test]
fn no_event_is_no_difference_and_says_so() {
    let ended = on("", &v1(), &v2(), &[]).expect(0);
    assert!(ended.stdout.contains("no event was judged, so this says nothing of the rules"), "{}", ended.stdout);
    assert_eq!(on("", &v1(), &v2(), &["--json"]).expect(0).json()["judged"], 0);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let (directory, path) = input("x\n");
    refused(diff(&v1(), &v2(), Path::new("nowhere.ndjson"), &[]), &["nowhere.ndjson", "No such file"]);
    refused(diff(&v1(), &v2(), directory.path(), &[]), &["cannot read", "is a directory"]);
    refused(diff(&v1(), &path, &path, &[]), &["input.ndjson: it is not WebAssembly"]);
    refused(diff(Path::new("gone.wasm"), &v2(), &path, &[]), &["gone.wasm: cannot read it: No such file"]);
    refused(diff(&v1(), &v2(), &path, &["--format", "csv"]), &["\"csv\" is not a format"]);
    refused(diff(&v1(), &v2(), &path, &["--events", "1"]), &["--event-version-attribute"]);
    refused(diff(&v1(), &v2(), &path, &["--default", "1"]), &["--event-version-attribute"]);
    refused(diff(&v1(), &v2(), &path, &["--event-version-field", "v"]), &["is not a JSON pointer"]);
    refused(diff(&v1(), &v2(), &path, &["--with", text(&path)]), &["say which with --pipeline"]);
    let both = ["--event-version-field", "/v", "--event-version-attribute", "v"];
    refused(diff(&v1(), &v2(), &path, &both), &["cannot be used with"]);
    refused(
        diff(&v1(), &v2(), &path, &["--pipeline", "p.toml", "--event-version-attribute", "v"]),
        &["cannot be used with"],
    );
    refused(diff(&v1(), &v2(), &path, &["--pipeline", text(&path)]), &["input.ndjson"]);
}

/// A finished run of Offvia's pipeline over 110 events: 80 accepted, 30 rejected; and one that was not judged.
fn finished() -> Pipeline {
    let lines = format!("{}{}\n", bookings::lines(110), "x".repeat(2_000));
    let pipeline = Pipeline::offvia(lines).warm().set("limits.payload=1 kB");
    pipeline.run().expect(0);
    pipeline
}

#[test]
fn a_bronze_table_gives_its_events() {
    let pipeline = finished();
    let database = pipeline.database();
    let report = diff(&v1(), &v2(), &database, &["--json", "--table", "offvia_bronze.raw_bookings"]).expect(3).json();
    assert_eq!(kinds(&report), [("accept→reject BUSINESS_RULE_VALIDATION", 80)]);
    assert_eq!((&report["judged"], &report["same"]), (&json!(111), &json!(31)));
    let samples = &report["differences"][0]["samples"];
    assert_eq!(samples[2]["message_id"], "input.ndjson:3", "{samples}");
}

#[test]
fn a_quarantine_table_gives_its_events_but_not_what_was_cut() {
    let pipeline = finished();
    let database = pipeline.database();
    let lenient = rebuilt(pipeline.directory(), "BUSINESS_RULE_VALIDATION", "BUSINESS_RULE_VIOLATIONS");
    let before = std::fs::read(&database).unwrap();
    let ended = diff(&v1(), &lenient, &database, &["--table", "poisoned_events", "--samples", "1"]).expect(3);
    for text in [
        "30 events judged by both: 10 the same, 20 different",
        "1 events skipped: not whole, the source kept no whole payload",
        "       20  reject BUSINESS_RULE_VALIDATION→reject BUSINESS_RULE_VIOLATIONS\n           input.ndjson:5\n",
    ] {
        assert!(ended.stdout.contains(text), "{text:?} is not in:\n{}", ended.stdout);
    }
    assert_eq!(std::fs::read(&database).unwrap(), before, "the database is only read");
}

#[test]
fn a_table_is_routed_by_its_attributes() {
    let pipeline = Pipeline::offvia(versions()).warm().set("source.file.format=envelope");
    pipeline.run().expect(0);
    let by = ["--json", "--table", "raw_bookings", "--event-version-attribute", "event_version"];
    assert_eq!(skipped(&diff(&v1(), &v1(), &pipeline.database(), &by).expect(0).json()), (2, 2, 1));
}

#[test]
fn a_table_that_holds_no_events_is_refused() {
    let pipeline = finished();
    let database = pipeline.database();
    let of = |path: &Path, table: &str| diff(&v1(), &v2(), path, &["--table", table]);
    refused(of(&database, "nowhere"), &["there is no table nowhere in", "warehouse.db"]);
    refused(of(&database, "fact_bookings"), &["table fact_bookings holds no events", "`raw_payload`", "`data`"]);
    refused(of(Path::new("gone.db"), "raw_bookings"), &["there is no table raw_bookings in gone.db"]);
    assert!(!Path::new("gone.db").exists(), "a database that is not there is not made");
    refused(of(&pipeline.input(), "raw_bookings"), &["input.ndjson", "not a database"]);
    refused(of(Path::new("-"), "raw_bookings"), &["--table is read from a SQLite database"]);
    refused(diff(&v1(), &v2(), &database, &[]), &["is a SQLite database: say which table to read with --table"]);
    let format = ["--table", "raw_bookings", "--format", "lines"];
    refused(diff(&v1(), &v2(), &database, &format), &["cannot be used with"]);
}

#[test]
fn components_of_a_rule_store_are_named_by_the_beginning_of_their_digest() {
    let (directory, path) = input(bookings::lines(11));
    let store = directory.path().join("rules");
    for name in ["offvia-booking", "offvia-booking-v2"] {
        let fixtures = paths::root().join("guest-validators").join(name).join("fixtures.ndjson");
        let rule = paths::rule(name);
        preflight(["rules", "stage", text(&rule), "--fixtures", text(&fixtures), "--store", text(&store)]).expect(0);
    }
    let digests = [v1(), v2()].map(|rule| Digest::of(&std::fs::read(rule).unwrap()));
    let (whole, short) = (digests[0].to_string(), &digests[1].hex()[..8]);
    let from_store = ["--store", text(&store), "--json"];
    let report = diff(Path::new(&whole), Path::new(short), &path, &from_store).expect(3).json();
    assert_eq!((&report["old"]["digest"], &report["new"]["digest"]), (&json!(digests[0]), &json!(digests[1])));
    // What is not staged yet is compared with what is.
    diff(Path::new(short), &v2(), &path, &from_store).expect(0);
    let pipeline = Pipeline::offvia("");
    let file = std::fs::read_to_string(pipeline.file()).unwrap();
    let (head, tail) = (file.split("[rules.components]").next().unwrap(), file.split("[warehouse").nth(1).unwrap());
    std::fs::write(pipeline.file(), format!("{head}store = {:?}\n[warehouse{tail}", text(&store))).unwrap();
    let file = pipeline.file();
    diff(Path::new(short), &v2(), &path, &["--pipeline", text(&file), "--events", "1"]).expect(0);
    refused(diff(Path::new("0000"), &v2(), &path, &from_store), &["no staged component", text(&store)]);
    refused(diff(Path::new("a"), &v2(), &path, &from_store), &["is not a digest"]);
    refused(diff(Path::new(short), &v2(), &path, &[]), &["in rule store rules", "there is no rule store here"]);
}

fn high_water(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processor time of each thread that judges, in ticks.
fn judged_for(pid: u32) -> Vec<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
    stats
        .filter(|stat| stat.contains("(judge-"))
        .map(|stat| stat.rsplit(") ").next().unwrap().split(' ').nth(11).unwrap().parse().unwrap())
        .collect()
}

/// 40 MB of events from standard input, of which some megabytes are held at a time, and every thread has its share.
#[test]
fn a_big_input_is_judged_on_all_cores_in_bounded_memory() {
    let mut command = Command::new(paths::preflight());
    command.args(["diff", text(&v1()), text(&v2()), "--input", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(bookings::lines(200_000).as_bytes()).unwrap();
    // All but the last micro-batches is judged by now: what is not judged is not read.
    let (kib, ticks) = (high_water(child.id()), judged_for(child.id()));
    drop(stdin);
    let ended = Ended::from_output(child.wait_with_output().unwrap()).expect(3);
    assert_eq!(kinds(&ended.json()), [("accept→reject BUSINESS_RULE_VALIDATION", 145_455)]);
    assert!(kib < 64 << 10, "{kib} KiB");
    assert!(!ticks.is_empty() && ticks.iter().all(|ticks| *ticks > 0), "{ticks:?}");
}
