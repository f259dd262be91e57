//! Files of events, and what is wrong with them.

use super::*;

#[test]
fn an_input_that_breaks_off_is_a_failure_at_run_time() {
    // It can be opened, and nothing can be read at its beginning.
    let ended = diff(&v1(), &v2(), Path::new("/proc/self/mem"), &[]).expect(1);
    assert!(ended.stderr.contains("cannot read /proc/self/mem"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn what_a_source_refuses_is_skipped_and_counted() {
    let lines = format!("{}not an envelope\n[]\n", envelope(Booking::v1("BK-1").json(), &[]));
    let ended = on(&lines, &v1(), &v1(), &["--format", "envelope"]).expect(0);
    assert!(ended.stdout.contains("1 events judged by both: 1 the same"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 events skipped: not whole, PARSE_ENVELOPE"), "{}", ended.stdout);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let (directory, path) = input("x\n");
    refused(diff(&v1(), &v2(), Path::new("nowhere.ndjson"), &[]), &["nowhere.ndjson", "No such file"]);
    refused(diff(&v1(), &v2(), directory.path(), &[]), &["is a directory"]);
    refused(diff(&v1(), &path, &path, &[]), &["input.ndjson: it is not WebAssembly"]);
    refused(diff(Path::new("gone.wasm"), &v2(), &path, &[]), &["gone.wasm: cannot read it: No such file"]);
    refused(diff(&v1(), &v2(), &path, &["--format", "xml"]), &["\"xml\" is not a format"]);
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
