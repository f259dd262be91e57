//! The command line: what a user types, what is answered, and the exit code.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use preflight_tests::pipeline::preflight;
use preflight_tests::{Booking, Ended, Pipeline, paths, tables};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn offvia() -> Pipeline {
    Pipeline::offvia(Booking::v1("BK-1").json() + "\n").warm()
}

/// Offvia's pipeline with something of its file replaced.
fn changed(from: &str, to: &str) -> Pipeline {
    let pipeline = offvia();
    let text = std::fs::read_to_string(pipeline.file()).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(pipeline.file(), text.replacen(from, to, 1)).unwrap();
    pipeline
}

/// Asserts that `check` and `run` refuse a pipeline alike, with exit code 2 and every text on one line.
#[track_caller]
fn refused(pipeline: &Pipeline, texts: &[&str]) {
    for ended in [pipeline.check(), pipeline.run()] {
        let ended = ended.expect(2);
        let line = ended.stderr.lines().find(|line| texts.iter().all(|text| line.contains(text)));
        assert!(line.is_some(), "no line with {texts:?} in:\n{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    assert!(!pipeline.database().exists(), "nothing is made before everything is checked");
}

/// A file beside the pipeline.
fn file(pipeline: &Pipeline, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = pipeline.directory().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Offvia's pipeline with this file in the place of the rule for version 2.
fn with_component(bytes: impl AsRef<[u8]>) -> Pipeline {
    let pipeline = offvia();
    let path = file(&pipeline, "other.wasm", bytes);
    pipeline.set(format!("rules.components.2={}", path.display()))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The modules that the rules were packed from.
fn module(name: &str) -> PathBuf {
    let module = format!("target/wasm32-unknown-unknown/rule/{}.wasm", name.replace('-', "_"));
    paths::root().join(module)
}

#[test]
fn check_passes_a_good_pipeline_and_changes_nothing() {
    let pipeline = offvia();
    let ended = pipeline.check().expect(0);
    assert!(ended.stdout.contains("test: every check passed"), "{}", ended.stdout);
    assert!(ended.stdout.contains("event version 2: offvia-booking-v2@"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("CREATE TABLE IF NOT EXISTS \"fact_bookings\" (\n  \"booking_id\" TEXT NOT NULL"),
        "{}",
        ended.stdout
    );
    assert!(!pipeline.database().exists());

    let ended = Ended::from_output(pipeline.command("check").arg("--json").output().unwrap()).expect(0);
    let answer = ended.json();
    assert_eq!((&answer["ok"], &answer["pipeline"]), (&json!(true), &json!("test")));
    assert_eq!(answer["rules"][0]["event_version"], "1");
    assert_eq!(answer["tables_to_make"].as_array().unwrap().len(), 3);
}

#[test]
fn check_refuses_an_unknown_key_with_its_line_and_the_nearest_key() {
    refused(
        &changed("[bronze]\ntable", "[bronze]\ntabel"),
        &["pipeline.toml:14: bronze.tabel: unknown key; did you mean `table`?"],
    );
    refused(&offvia().set("batch.max_event=1"), &["--set: batch.max_event: unknown key; did you mean `max_events`?"]);
    refused(&changed("name = \"test\"", "name = \"test\"\n[limit]"), &["limit: unknown key; did you mean `limits`?"]);
}

#[test]
fn check_refuses_a_missing_component() {
    let pipeline = offvia().set("rules.components.2=nowhere.wasm");
    refused(&pipeline, &["--set: rules.components.\"2\": nowhere.wasm: cannot read it: No such file"]);
}

#[test]
fn check_names_the_line_of_a_component_of_any_version_name() {
    let pipeline = changed("\"1\" = ", "v1 = ").set("rules.event_version.default=v1");
    refused(&pipeline, &["pipeline.toml:9: rules.components.v1:", "judges event versions 1, not \"v1\""]);
}

#[test]
fn check_refuses_a_component_that_imports_wasi() {
    let wasi = r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func (result u64))))))"#;
    let key = "rules.components.\"2\"";
    refused(&with_component(wat::parse_str(wasi).unwrap()), &[key, "it imports wasi:clocks/wall-clock@0.2.0#now"]);
    let bare = r#"(component (import "run" (func)))"#;
    refused(&with_component(wat::parse_str(bare).unwrap()), &[key, "it imports run"]);
}

#[test]
fn check_refuses_what_is_no_rule() {
    let key = "rules.components.\"2\"";
    let component = std::fs::read(paths::rule("offvia-booking-v2")).unwrap();
    let cut = &component[..component.len() / 2];
    refused(
        &with_component(b"\0asm\x01\0\0\0"),
        &[key, "it is a core module, not a component: run `preflight pack` on it"],
    );
    refused(
        &with_component(std::fs::read(module("offvia-booking-v2")).unwrap()),
        &[key, "core module", "preflight pack"],
    );
    refused(&with_component("(component)"), &[key, "it is not WebAssembly"]);
    refused(&with_component(""), &[key, "it is not WebAssembly"]);
    refused(&with_component(cut), &[key, "it does not compile"]);
    refused(&with_component(wat::parse_str("(component)").unwrap()), &[key, "it is not a validator"]);
    refused(
        &with_component(component).set("limits.component=100 kB"),
        &[key, "above `limits.component` (100000 bytes)"],
    );
    let pipeline = offvia();
    let directory = format!("rules.components.2={}", pipeline.directory().display());
    refused(&pipeline.set(directory), &[key, "is a directory"]);
}

#[test]
fn check_refuses_a_rule_for_another_event_version() {
    let pipeline = offvia().set(format!("rules.components.3={}", paths::rule("offvia-booking").display()));
    refused(&pipeline, &["rules.components.\"3\"", "rule offvia-booking@0.1.0 judges event versions 1, not \"3\""]);
}

/// A pipeline whose silver table was made before.
fn with_silver(columns: &str) -> Pipeline {
    let pipeline = offvia();
    let made = Pipeline::offvia("").warm();
    made.run().expect(0);
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'fact_bookings'";
    let sql = tables::query(&made.database(), sql)[0]["sql"].as_str().unwrap().to_owned();
    let (columns, from) = columns.split_once(" INSTEAD OF ").unwrap_or((columns, "\n)"));
    assert!(sql.contains(from), "{sql}");
    let connection = rusqlite::Connection::open(pipeline.database()).unwrap();
    connection.execute_batch(&sql.replace(from, columns)).unwrap();
    pipeline
}

#[test]
fn check_refuses_rules_that_do_not_fit_silver() {
    let check = |columns: &str, texts: &[&str]| {
        let pipeline = with_silver(columns);
        let ended = pipeline.check().expect(2);
        let line = ended.stderr.lines().find(|line| texts.iter().all(|text| line.contains(text)));
        assert!(line.is_some(), "no line with {texts:?} in:\n{}", ended.stderr);
    };
    let one = "pipeline.toml:9: rules.components.\"1\": rule offvia-booking@0.1.0";
    let two = "pipeline.toml:10: rules.components.\"2\": rule offvia-booking-v2@0.1.0";
    check(", tenant TEXT NOT NULL)", &[one, "does not produce column `tenant`, which is NOT NULL in silver"]);
    check(", tenant TEXT NOT NULL)", &[two, "does not produce column `tenant`"]);
    check("tier INSTEAD OF loyalty_tier", &[two, "produces column `loyalty_tier` (STRING), which silver lacks"]);
    check(
        "\"loyalty_tier\" TEXT NOT NULL INSTEAD OF \"loyalty_tier\" TEXT",
        &[two, "may leave column `loyalty_tier` null"],
    );
    check(
        "\"fare_amount\" NUMERIC INSTEAD OF \"fare_amount\" NUMERIC_TEXT",
        &["pipeline.toml:9: rules.components.\"1\": column `fare_amount` is declared NUMERIC, which cannot hold"],
    );
    check(
        "\"booking_id\" ANY INSTEAD OF \"booking_id\" TEXT",
        &["column `booking_id` is declared ANY, which cannot hold"],
    );
    check(
        "\"loaded_at\" TIMESTAMP INSTEAD OF \"ingestion_timestamp\" TIMESTAMP",
        &["silver.host_columns.ingestion_timestamp", "no such column"],
    );
    // All rules share the columns of one insert, so a default does not fill what another rule fills: every event of version 1
    // was quarantined.
    check(
        "\"loyalty_tier\" TEXT NOT NULL DEFAULT 'none' INSTEAD OF \"loyalty_tier\" TEXT",
        &[one, "does not produce column `loyalty_tier`", "its default does not help"],
    );
    // A default, a nullable column and another case are no problem.
    with_silver(", tenant TEXT NOT NULL DEFAULT 'offvia', note TEXT)").run().expect(0);
    with_silver("\"Booking_ID\" INSTEAD OF \"booking_id\"").run().expect(0);
}

#[test]
fn check_refuses_host_columns_that_do_not_fit_silver() {
    let key = "silver.host_columns.source_key";
    let pipeline = with_silver(", source_key TEXT NOT NULL)").set(format!("{key}=ordering_key"));
    let stderr = pipeline.check().expect(2).stderr;
    assert!(stderr.contains(&format!("{key}: column `source_key` is NOT NULL, but not every event")), "{stderr}");
    with_silver(", source_key TEXT)").set(format!("{key}=ordering_key")).check().expect(0);
    let stderr =
        with_silver(", rule_version INTEGER)").set("silver.host_columns.rule_version=rule").check().expect(2).stderr;
    assert!(stderr.contains("which cannot hold the host's STRING"), "{stderr}");
    let pipeline = offvia().set("silver.partition_by=source_message_id");
    refused(&pipeline, &["silver.partition_by: column `source_message_id` is neither TIMESTAMP nor DATE"]);
}

#[test]
fn check_names_every_problem_at_once_and_as_json() {
    let pipeline = offvia().set("name=Bad Name").set("limits.memory=64").set("silver.create=maybe");
    let stderr = pipeline.check().expect(2).stderr;
    for key in ["--set: name:", "--set: limits.memory:", "--set: silver.create:"] {
        assert!(stderr.contains(key), "{stderr}");
    }
    let ended = Ended::from_output(pipeline.command("check").arg("--json").output().unwrap()).expect(2);
    let problems = &ended.json()["problems"];
    assert_eq!(problems.as_array().unwrap().len(), 3);
    assert_eq!((&problems[0]["origin"], &problems[0]["key"]), (&json!("--set"), &json!("name")));
}

#[test]
fn check_refuses_a_file_that_is_no_pipeline() {
    let pipeline = offvia();
    for (bytes, what) in
        [(b"name = \n" as &[u8], "pipeline.toml:1: not TOML"), (b"", "missing field"), (b"\xff", "cannot read it")]
    {
        std::fs::write(pipeline.file(), bytes).unwrap();
        refused(&pipeline, &[what]);
    }
    let ended = preflight(["check", "/nowhere/pipeline.toml"]).expect(2);
    assert!(ended.stderr.contains("/nowhere/pipeline.toml: cannot read it"), "{}", ended.stderr);
}

#[test]
fn an_overlay_and_settings_lie_over_the_file() {
    let pipeline = offvia();
    let overlay = file(&pipeline, "overlay.toml", "name = 'overlaid'\n[warehouse.sqlite]\npath = 'elsewhere.db'\n");
    let run = |arguments: &[&str]| {
        Ended::from_output(pipeline.command("run").arg("--json").args(arguments).output().unwrap()).expect(0).json()
    };
    let report = run(&["--with", text(&overlay)]);
    assert_eq!((&report["pipeline"], &report["silver"]), (&json!("overlaid"), &json!(1)));
    assert!(pipeline.directory().join("elsewhere.db").exists() && !pipeline.database().exists());
    // What comes last wins; a path on the command line is relative to the working directory.
    let report = run(&["--with", text(&overlay), "--set", "warehouse.sqlite.path=third.db", "--set", "name=set"]);
    assert_eq!(report["pipeline"], "set");
    assert!(pipeline.directory().join("third.db").exists());
    // The overlay's problems are told with its lines.
    let broken = file(&pipeline, "broken.toml", "\n[limits]\nmemory = '1'\n");
    let ended =
        Ended::from_output(pipeline.command("check").args(["--with", text(&broken)]).output().unwrap()).expect(2);
    assert!(ended.stderr.contains("broken.toml:3: limits.memory"), "{}", ended.stderr);
}

#[test]
fn a_setting_that_is_none_is_refused() {
    for setting in ["name", "=1", "a b=1", "name.x=1"] {
        let ended = Ended::from_output(offvia().command("check").args(["--set", setting]).output().unwrap()).expect(2);
        assert!(ended.stderr.starts_with("error: "), "{setting}: {}", ended.stderr);
    }
    // A number is text where a text is wanted, and so is what only looks like TOML.
    offvia().set("name=7").check().expect(0);
    offvia().set("source.file.path=input.ndjson").set("rules.cache=[code").check().expect(0);
}

#[test]
fn inspect_shows_what_a_component_says_of_itself() {
    let component = paths::rule("offvia-booking-v2");
    let bytes = std::fs::read(&component).unwrap();
    let sha256 = preflight::digest::Digest::of(&bytes);
    let shown = preflight(["inspect", text(&component)]).expect(0).stdout;
    for line in [
        "name            offvia-booking-v2",
        "version         0.1.0",
        "event versions  2",
        "attributes      none",
        "imports         none (no WASI, clock, random, files or network)",
        "of the contract preflight:rules/log@0.1.0#panicked",
        &format!("size            {} bytes", bytes.len()),
        &format!("sha256          {}", sha256.hex()),
        "columns         booking_id STRING NOT NULL",
        "                fare_amount NUMERIC NOT NULL",
        "                event_timestamp TIMESTAMP NOT NULL (event time)",
        "                loyalty_tier STRING",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line:?} is missing in:\n{shown}");
    }
    let answer = preflight(["inspect", "--json", text(&component)]).expect(0).json();
    assert_eq!(answer["digest"], sha256.to_string());
    assert_eq!(answer["size"], bytes.len());
    assert_eq!(answer["event_versions"], json!(["2"]));
    assert_eq!(answer["imports"], json!([]));
    assert_eq!(answer["contract"], json!(["preflight:rules/log@0.1.0#panicked"]));
    assert_eq!(answer["columns"][9], json!({ "name": "loyalty_tier", "type": "text", "nullable": true }));
}

#[test]
fn inspect_refuses_what_no_pipeline_would_take() {
    let pipeline = offvia();
    let wasi = r#"(component (import "wasi:cli/environment@0.2.0" (instance (export "get" (func)))))"#;
    let cases = [
        (file(&pipeline, "text.wasm", "hello"), "it is not WebAssembly"),
        (file(&pipeline, "module.wasm", b"\0asm\x01\0\0\0"), "it is a core module"),
        (file(&pipeline, "wasi.wasm", wat::parse_str(wasi).unwrap()), "it imports wasi:cli/environment@0.2.0#get"),
        (pipeline.directory().join("none.wasm"), "cannot read it"),
        (pipeline.directory().to_owned(), "is a directory"),
    ];
    for (path, what) in cases {
        let ended = preflight(["inspect", text(&path)]).expect(2);
        assert!(ended.stderr.contains(what) && ended.stderr.contains(text(&path)), "{}", ended.stderr);
    }
}

#[test]
fn pack_makes_a_module_a_component_and_replaces_the_file_whole() {
    let pipeline = offvia();
    let target = file(&pipeline, "rule.wasm", "an older one");
    let kept_open = std::fs::File::open(&target).unwrap();
    let ended = preflight(["pack", text(&module("offvia-booking")), "-o", text(&target)]).expect(0);
    let component = std::fs::read(&target).unwrap();
    assert!(ended.stdout.contains(&preflight::digest::Digest::of(&component).to_string()), "{}", ended.stdout);
    // Whoever reads the older file reads it to its end: it was not written over.
    assert_eq!(std::io::read_to_string(kept_open).unwrap(), "an older one");
    let entries = std::fs::read_dir(pipeline.directory()).unwrap().count();
    assert_eq!(entries, 3, "pipeline, input, component, and no temporary file");
    // The same module gives the same component, and that judges.
    preflight(["pack", text(&module("offvia-booking")), "-o", text(&target)]).expect(0);
    assert_eq!(std::fs::read(&target).unwrap(), component);
    assert_eq!(pipeline.set("rules.components.1=rule.wasm").run().expect(0).json()["silver"], 1);
}

#[test]
fn pack_writes_beside_the_module_if_nothing_else_is_said() {
    let pipeline = offvia();
    let given = file(&pipeline, "mine.wasm", std::fs::read(module("offvia-booking")).unwrap());
    preflight(["pack", text(&given)]).expect(0);
    assert!(pipeline.directory().join("mine.component.wasm").exists());
}

/// An empty module became a component, which then no pipeline took.
#[test]
fn pack_refuses_what_cannot_become_a_rule() {
    let pipeline = offvia();
    let whole = std::fs::read(module("offvia-booking")).unwrap();
    let wasi = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32))))"#;
    let cases = [
        (file(&pipeline, "cut.wasm", &whole[..whole.len() / 2]), "it is not a valid WebAssembly module"),
        (file(&pipeline, "header.wasm", &whole[..8]), "it has no rule contract"),
        (file(&pipeline, "empty.wasm", ""), "it is not a WebAssembly module"),
        (file(&pipeline, "text.wasm", "(module)"), "it is not a WebAssembly module"),
        (file(&pipeline, "foreign.wasm", wat::parse_str(wasi).unwrap()), "it has no rule contract"),
        (paths::rule("offvia-booking"), "it is a component already"),
        (pipeline.directory().join("none.wasm"), "cannot read it"),
    ];
    let target = file(&pipeline, "target.wasm", "kept");
    for (path, what) in cases {
        let ended = preflight(["pack", text(&path), "-o", text(&target)]).expect(2);
        assert!(ended.stderr.contains(what), "{what}: {}", ended.stderr);
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept");
    }
    let nowhere = pipeline.directory().join("no/such/directory.wasm");
    let ended = preflight(["pack", text(&module("offvia-booking")), "-o", text(&nowhere)]).expect(1);
    assert!(ended.stderr.contains("cannot write"), "{}", ended.stderr);
}

fn fixtures(name: &str) -> PathBuf {
    paths::root().join(format!("guest-validators/{name}/fixtures.ndjson"))
}

#[test]
fn test_finds_that_the_fixtures_of_both_rules_hold() {
    for name in ["offvia-booking", "offvia-booking-v2"] {
        let lines = std::fs::read_to_string(fixtures(name)).unwrap().lines().count();
        let answer = preflight(["test", "--json", text(&paths::rule(name)), text(&fixtures(name))]).expect(0).json();
        assert_eq!((&answer["passed"], &answer["failed"]), (&json!(lines), &json!(0)), "{name}");
    }
    // A directory stands for every .ndjson in it.
    let directory = fixtures("offvia-booking");
    let ended = preflight(["test", text(&paths::rule("offvia-booking")), text(directory.parent().unwrap())]).expect(0);
    assert!(ended.stdout.contains("ok   the seed's negative fare\n"), "{}", ended.stdout);
    assert!(ended.stdout.trim_end().ends_with("fixtures hold, 0 do not"), "{}", ended.stdout);
}

#[test]
fn test_shows_how_a_verdict_differs() {
    let pipeline = offvia();
    let good = Booking::v1("BK-1").json();
    let row = json!({
        "booking_id": "BK-1", "passenger_id": "PAX-4821", "flight_number": "OF-104", "origin_airport": "JFK",
        "destination_airport": "LHR", "fare_amount": "749.5", "currency": "USD", "booking_status": "CONFIRMED",
        "event_timestamp": "2026-10-07T14:10:00.000000Z",
    });
    let mut other = row.clone();
    other["fare_amount"] = "749.50".into();
    other["cabin"] = "Y".into();
    let fixture = |name: &str, payload: &str, expect: Value| {
        format!("{}\n", json!({ "name": name, "payload": payload, "expect": expect }))
    };
    let bad = STANDARD.encode(b"\xff");
    let lines = [
        fixture("holds", &good, json!({ "accept": row })),
        fixture("row", &good, json!({ "accept": other })),
        fixture("stage", "[]", json!({ "reject": { "stage": "PARSE_JSON" } })),
        fixture("reason", "[]", json!({ "reject": { "stage": "SCHEMA_VALIDATION", "reason": "no" } })),
        fixture("kind", &good, json!({ "reject": { "stage": "PARSE_JSON" } })),
        fixture("ignored", "{}", json!({ "ignore": true })),
        format!(
            "{{\"name\":\"bytes\",\"payload_base64\":\"{bad}\",\"expect\":{{\"reject\":{{\"stage\":\"PARSE_JSON\"}}}}}}\n"
        ),
    ];
    let path = file(&pipeline, "fixtures.ndjson", lines.concat());
    let ended = preflight(["test", text(&paths::rule("offvia-booking")), text(&path)]).expect(1);
    assert_eq!(
        ended.stdout,
        "ok   holds\n\
         FAIL row\n       cabin: the rule has no such column\n       fare_amount: expected \"749.50\", got \"749.5\"\n\
         FAIL stage\n       stage: expected \"PARSE_JSON\", got \"SCHEMA_VALIDATION\"\n\
         FAIL reason\n       reason: expected \"no\", got \"payload must be a JSON object, found a list\"\n\
         FAIL kind\n       expected reject at PARSE_JSON, got accept booking_id=\"BK-1\" passenger_id=\"PAX-4821\" \
         flight_number=\"OF-104\" origin_airport=\"JFK\" destination_airport=\"LHR\" fare_amount=\"749.5\" currency=\"USD\" \
         booking_status=\"CONFIRMED\" event_timestamp=\"2026-10-07T14:10:00.000000Z\"\n\
         FAIL ignored\n       expected ignore, got reject at SCHEMA_VALIDATION: Missing required fields: booking_id, \
         destination, event_time, fare, flight_number, origin, passenger_id\n\
         ok   bytes\n\
         2 fixtures hold, 5 do not\n"
    );
    let answer = preflight(["test", "--json", text(&paths::rule("offvia-booking")), text(&path)]).expect(1).json();
    assert_eq!(answer["failed"], 5);
    assert_eq!(answer["fixtures"][1]["differences"][0], "cabin: the rule has no such column");
}

#[test]
fn test_refuses_fixtures_it_cannot_read() {
    let pipeline = offvia();
    let rule = paths::rule("offvia-booking");
    let cases = [
        (file(&pipeline, "a.ndjson", "{}\n"), "a.ndjson: line 1: not a fixture"),
        (
            file(&pipeline, "b.ndjson", "\n\n{\"name\":\"x\",\"expect\":{\"ignore\":true}}\n"),
            "b.ndjson: line 3: neither",
        ),
        (file(&pipeline, "c.ndjson", ""), "c.ndjson: it holds no fixture"),
        (pipeline.directory().join("none.ndjson"), "none.ndjson"),
        (paths::root().join("tests/all"), "holds no .ndjson file"),
    ];
    for (path, what) in cases {
        let ended = preflight(["test", text(&rule), text(&path)]).expect(2);
        assert!(ended.stderr.contains(what), "{what}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    preflight(["test", text(&rule)]).expect(2);
    preflight(["test", "nowhere.wasm", text(&fixtures("offvia-booking"))]).expect(2);
}

#[test]
fn run_closes_with_a_table_of_counts() {
    let pipeline = Pipeline::offvia(format!("{}\n[]\nx\n", Booking::v1("BK-1").json())).warm();
    let ended = Ended::from_output(pipeline.command("run").output().unwrap()).expect(0);
    let words: Vec<Vec<&str>> =
        ended.stdout.lines().map(|line| line.trim_matches('│').split_whitespace().collect()).collect();
    for row in [
        vec!["bronze", "raw_bookings", "3"],
        vec!["silver", "fact_bookings", "1"],
        vec!["quarantine", "poisoned_events", "2"],
        vec!["PARSE_JSON", "1"],
        vec!["SCHEMA_VALIDATION", "1"],
        vec!["ignored", "0"],
    ] {
        assert!(words.contains(&row), "{row:?} is missing in:\n{}", ended.stdout);
    }
    assert!(ended.stdout.starts_with("test: 3 events in "), "{}", ended.stdout);
}

#[test]
fn rows_are_counted_by_the_values_of_a_column() {
    let bookings = ["BK-1", "BK-2", "BK-2", "BK-3"].map(Booking::v1);
    let lines: String = bookings.iter().map(|booking| format!("{}\n", booking.json())).collect();
    let counted = |column: &str| {
        let pipeline = Pipeline::offvia(&lines).warm().set("dedup.by={ columns = [\"booking_id\"] }");
        pipeline.set(format!("silver.count_by={column}"))
    };
    let report = counted("booking_id").run().expect(0).json();
    let by = json!({"column": "booking_id", "values": {"BK-1": 1, "BK-2": 1, "BK-3": 1}, "others": 0});
    assert_eq!((&report["silver_by"], &report["silver"], &report["duplicates"]), (&by, &json!(3), &json!(1)));
    assert_eq!(report["bytes"], lines.len());
    assert!(report["events_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{report:#}");

    let ended = Ended::from_output(counted("Currency").command("run").output().unwrap()).expect(0);
    assert!(ended.stdout.contains("Currency     USD "), "{}", ended.stdout);
    refused(
        &counted("status"),
        &["silver.count_by: no rule and no host column fills `status`: filled are booking_id, passenger_id"],
    );
}

#[test]
fn run_refuses_a_missing_input_file() {
    refused(
        &offvia().set("source.file.path=nowhere.ndjson"),
        &["--set: source.file.path: nowhere.ndjson: No such file"],
    );
    refused(&offvia().set("source.file.path=/"), &["source.file.path: / is a directory"]);
}

#[test]
fn two_pipelines_run_in_one_command() {
    let (one, two) = (offvia(), Pipeline::offvia("x\n").warm());
    let second = changed("name = \"test\"", "name = \"other\"");
    std::fs::copy(second.file(), two.file()).unwrap();
    let (first, other) = (one.file(), two.file());
    let cache = format!("rules.cache={}", paths::scratch().join("code").display());
    let ended = preflight(["run", text(&first), text(&other), "--json", "--set", &cache]).expect(0);
    let reports: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&reports[0]["pipeline"], &reports[0]["silver"]), (&json!("test"), &json!(1)));
    assert_eq!((&reports[1]["pipeline"], &reports[1]["quarantine"]), (&json!("other"), &json!(1)));
}

/// Only the last of several failures was told.
#[test]
fn each_of_several_pipelines_says_why_it_failed() {
    let (one, two) = (offvia(), changed("name = \"test\"", "name = \"other\""));
    std::fs::remove_file(one.input()).unwrap();
    std::fs::remove_file(two.input()).unwrap();
    let ended = preflight(["run", text(&one.file()), text(&two.file())]).expect(2);
    for pipeline in [&one, &two] {
        assert!(ended.stderr.contains(text(&pipeline.input())), "{}", ended.stderr);
    }
}

/// The first had read and written before the second was looked at.
#[test]
fn no_pipeline_begins_while_another_would_be_refused() {
    let (good, bad) = (offvia(), changed("name = \"test\"", "name = \"other\""));
    std::fs::remove_file(bad.input()).unwrap();
    let ended = preflight(["run", text(&good.file()), text(&bad.file())]).expect(2);
    assert!(ended.stderr.contains(text(&bad.input())), "{}", ended.stderr);
    assert!(!good.database().exists());
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = preflight(["completions", shell]).expect(0).stdout;
        for command in ["run", "check", "pack", "inspect", "test"] {
            assert!(script.contains(command), "{shell} lacks {command}");
        }
    }
}

#[test]
fn the_version_has_the_commit() {
    let shown = preflight(["--version"]).expect(0).stdout;
    let commit =
        shown.trim_end().strip_suffix(')').and_then(|rest| rest.rsplit_once('(')).expect("a commit in brackets").1;
    assert!(commit.len() >= 12 && commit.bytes().take(12).all(|byte| byte.is_ascii_hexdigit()), "{shown}");
}

#[test]
fn wrong_usage_ends_with_code_2() {
    for arguments in
        [vec![], vec!["bogus"], vec!["run"], vec!["check"], vec!["run", "--bogus", "x"], vec!["completions", "tcsh"]]
    {
        let ended = preflight(&arguments).expect(2);
        assert!(ended.stderr.contains("Usage") || ended.stderr.contains("possible values"), "{}", ended.stderr);
    }
    assert!(preflight(["rum"]).expect(2).stderr.contains("'run'"), "a similar command is named");
}

/// `preflight completions bash | head -0` panicked.
#[test]
fn a_reader_that_went_away_is_no_error() {
    let pipeline = offvia();
    let rule = paths::rule("offvia-booking");
    let mut commands: Vec<Command> = vec![pipeline.command("run"), pipeline.command("check")];
    let fixtures = fixtures("offvia-booking");
    for arguments in [
        vec!["completions", "bash"],
        vec!["completions", "fish"],
        vec!["--help"],
        vec!["--version"],
        vec!["inspect", text(&rule)],
        vec!["test", text(&rule), text(&fixtures)],
    ] {
        let mut command = Command::new(paths::preflight());
        command.args(arguments);
        commands.push(command);
    }
    for mut command in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output =
            command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output();
        let ended = Ended::from_output(output.unwrap()).expect(0);
        assert!(!ended.stderr.contains("panic"), "{}", ended.stderr);
    }
}
