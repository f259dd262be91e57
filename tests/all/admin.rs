//! The admin endpoint of a running worker.

use preflight::releases::Change;
use preflight_tests::http::{connect, get, request};
use preflight_tests::{Booking, Ended, Following, Pipeline, Running, Toy, paths};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{ChildStdin, Command, Stdio};

/// Offvia's pipeline, reading standard input, with an endpoint on a free port.
fn pipeline() -> Pipeline {
    Pipeline::offvia("")
        .warm()
        .set("source.stdin.format=lines")
        .set("batch.max_age=20 ms")
        .set("admin.listen=127.0.0.1:0")
}

/// A run that has begun to read, its standard input, and where its endpoint listens.
fn started(pipeline: &Pipeline) -> (Running, ChildStdin, String) {
    let (mut running, stdin) = Running::start(pipeline);
    let address = running.admin();
    running.wait_until(|| get(&address, "/readyz").status == 200);
    (running, stdin, address)
}

/// Two good bookings, one that its rule rejects, one that is no JSON.
fn input() -> String {
    let bad = Booking::v1("BK-3").with("fare", r#""-1""#);
    [Booking::v1("BK-1").json(), Booking::v1("BK-2").json(), bad.json(), "nonsense".into()].join("\n") + "\n"
}

fn events(address: &str) -> u64 {
    get(address, "/metrics").counted("preflight_events_total")
}

#[test]
fn each_path_answers_and_the_counts_are_those_of_the_closing_report() {
    let pipeline = pipeline();
    let (mut running, mut stdin, address) = started(&pipeline);
    let healthy = get(&address, "/healthz");
    assert_eq!((healthy.status, healthy.body.as_str()), (200, "ok\n"));
    assert_eq!(get(&address, "/readyz").json(), json!({ "ready": true, "reasons": [], "warnings": [] }));

    stdin.write_all(input().as_bytes()).unwrap();
    running.wait_until(|| events(&address) == 4);
    let metrics = get(&address, "/metrics");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(metrics.head.contains(kind), "{}", metrics.head);
    assert!(metrics.body.ends_with("# EOF\n"), "{}", metrics.body);
    let rows = |tier: &str| metrics.metric(&format!("preflight_rows_total{{pipeline=\"test\",tier=\"{tier}\"}}"));
    assert_eq!([rows("bronze"), rows("silver"), rows("quarantine")], ["4", "2", "2"]);
    assert_eq!(metrics.metric("preflight_commits_undelivered{pipeline=\"test\"}"), "0");
    assert_eq!(metrics.metric("preflight_batches_in_judging{pipeline=\"test\"}"), "0");
    assert_eq!(metrics.metric("preflight_source_read_bytes{pipeline=\"test\"}"), input().len().to_string());
    assert_eq!(metrics.metric("preflight_batch_events_sum{pipeline=\"test\"}"), "4.0");
    let lag: f64 = metrics.metric("preflight_publish_lag_seconds{pipeline=\"test\"}").parse().unwrap();
    assert!((0.0..60.0).contains(&lag), "{lag}");
    for times in ["batch_evaluation", "event_evaluation", "batch_age", "ledger_commit", "append"] {
        assert_ne!(metrics.metric(&format!("preflight_{times}_seconds_count{{pipeline=\"test\"}}")), "0", "{times}");
    }

    let status = get(&address, "/status").json();
    let one = &status["pipelines"][0];
    assert_eq!((&one["name"], &one["state"]), (&json!("test"), &json!("running")));
    assert_eq!(one["worker"]["revision"], json!(null));
    let active = &one["worker"]["event_versions"]["2"]["roles"]["active"];
    assert!(active["rule"].as_str().unwrap().starts_with("offvia-booking-v2@"), "{active}");
    assert!(active["digest"].as_str().unwrap().starts_with("sha256:"), "{active}");
    assert_eq!(one["source"], json!({ "read_bytes": input().len(), "size_bytes": null }));
    assert!(one["publish_lag_seconds"].as_f64().is_some() && status["uptime_seconds"].as_f64().is_some(), "{status}");

    drop(stdin);
    let report = running.finish().expect(0).json();
    let counts = &one["counts"];
    let counted = [&counts["events"], &counts["accepted"], &counts["rejected"], &counts["ignored"]];
    assert_eq!(counted, [&report["events"], &report["silver"], &report["quarantine"], &report["ignored"]]);
    assert_eq!(counts["event_versions"]["1"]["rejected"], report["rejected"]);
    for rejected in report["rejected"].as_array().unwrap() {
        let stage = rejected["stage"].as_str().unwrap();
        let series = format!(
            "preflight_events_total{{pipeline=\"test\",outcome=\"rejected\",stage=\"{stage}\",event_version=\"1\"}}"
        );
        assert_eq!(metrics.metric(&series), rejected["events"].to_string(), "{stage}");
    }
}

#[test]
fn head_is_answered_without_a_body_other_methods_and_paths_are_refused() {
    let pipeline = pipeline();
    let (running, _stdin, address) = started(&pipeline);
    for path in ["/healthz", "/readyz", "/status", "/metrics"] {
        let head = request(&address, "HEAD", path);
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
            assert_eq!(request(&address, method, path).status, 405, "{method} {path}");
        }
    }
    for path in ["/", "/healthz/", "/metrics/x", "/../status", "/%2e%2e"] {
        assert_eq!(get(&address, path).status, 404, "{path}");
    }
    drop(running);
}

/// What comes back until the other side ends the connection, however it does.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(got @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..got]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn garbage_endless_headers_and_clients_that_say_nothing_are_cut_off_and_harm_nothing() {
    let pipeline = pipeline();
    let (mut running, mut stdin, address) = started(&pipeline);
    // As many as are taken at a time: they are cut in the end, and others have their turn.
    let silent: Vec<TcpStream> = (0..32)
        .map(|number| {
            let mut stream = connect(&address);
            if number % 2 == 0 {
                stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").unwrap();
            }
            stream
        })
        .collect();
    for stream in silent {
        let answer = rest(stream);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let mut endless = connect(&address);
    endless.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    let mut sent = 0;
    while sent < 64 << 20 {
        match endless.write(b"x-filler: 0123456789012345678901234567890123456789\r\n") {
            Ok(more) => sent += more,
            Err(_) => break,
        }
    }
    assert!(sent < 64 << 20, "nothing stopped an endless header");
    for garbage in [&b"\0\xff\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"[..], b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = connect(&address);
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = rest(stream);
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    stdin.write_all(input().as_bytes()).unwrap();
    running.wait_until(|| events(&address) == 4);
    drop(stdin);
    assert_eq!(running.finish().expect(0).json()["events"], 4);
}

#[test]
fn a_run_ends_while_clients_hold_connections_open() {
    let pipeline = pipeline();
    let (running, stdin, address) = started(&pipeline);
    let idle = connect(&address);
    let mut half = connect(&address);
    half.write_all(b"GET /metr").unwrap();
    let asked = std::time::Instant::now();
    running.signal(Signal::TERM);
    running.finish().expect(0);
    // Less than a connection may last: it was not waited for.
    assert!(asked.elapsed().as_secs() < 4, "{:?}", asked.elapsed());
    drop((idle, half, stdin));
}

#[test]
fn a_pipeline_that_cannot_write_yet_is_not_ready_and_says_since_when() {
    let pipeline = pipeline();
    let (mut running, mut stdin, address) = started(&pipeline);
    let holder = Connection::open(pipeline.database()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    stdin.write_all(input().as_bytes()).unwrap();
    running.wait_until(|| get(&address, "/readyz").status == 503);
    let answer = get(&address, "/readyz").json();
    let reason = answer["reasons"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("rows cannot be written since 2") && reason.contains("locked"), "{answer}");
    assert_eq!((&answer["ready"], &answer["reasons"][0]["pipeline"]), (&json!(false), &json!("test")));
    let retries = get(&address, "/metrics").counted("preflight_retries_total{pipeline=\"test\"");
    assert!(retries > 0);
    assert_eq!(get(&address, "/healthz").status, 200);
    holder.execute_batch("ROLLBACK").unwrap();
    running.wait_until(|| get(&address, "/readyz").status == 200);
    drop(stdin);
    assert_eq!(running.finish().expect(0).json()["events"], 4);
}

#[test]
fn with_a_rule_store_the_revision_served_and_the_one_refused_are_told_and_the_worker_stays_ready() {
    let build = |n| Toy { n, ..Toy::default() }.component();
    let following = Following::new("[admin]\nlisten = \"127.0.0.1:0\"\n");
    let one = following.begin_with(&build(1), "1");
    let mut fed = following.start();
    let address = fed.run.admin();
    following.serves(&mut fed, 1);
    // Its fixtures say what the first build does.
    let bad = following.stage(&build(2));
    following.promote(bad, "1");
    let refused = || get(&address, "/status").json()["pipelines"][0]["worker"]["refused"]["revision"] == 2;
    fed.run.wait_until(refused);
    let ready = get(&address, "/readyz");
    let warning = ready.json()["warnings"][0]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(ready.status == 200 && warning.starts_with("revision 2 is refused since 2"), "{ready:?}");
    let worker = get(&address, "/status").json()["pipelines"][0]["worker"].clone();
    assert_eq!(worker["revision"], 1);
    assert_eq!(worker["event_versions"]["1"]["roles"]["active"]["digest"], one.to_string());

    let metrics = get(&address, "/metrics");
    let counted = |name: &str| metrics.counted(&format!("preflight_{name}"));
    assert_eq!([counted("active_revision"), counted("refused_revision"), counted("reloads_total")], [1, 2, 1]);
    following.change(&Change::Rollback { events: "1".into() });
    following.serves(&mut fed, 3);
    fed.run.wait_until(|| get(&address, "/metrics").counted("preflight_active_revision") == 3);
    let metrics = get(&address, "/metrics");
    assert_eq!(metrics.counted("preflight_refused_revision"), 0);
    assert_eq!(metrics.counted("preflight_reloads_total"), 2);
    fed.finish().expect(0);
}

#[test]
fn a_port_in_use_ends_the_run_before_the_first_event() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let pipeline = Pipeline::offvia(input()).warm().set(format!("admin.listen={address}"));
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains(&format!("cannot listen on {address}")), "{}", ended.stderr);
    assert!(ended.stderr.contains("[admin] listen"), "{}", ended.stderr);
    assert!(!pipeline.database().exists(), "nothing was begun");
}

#[test]
fn an_address_that_is_not_of_this_machine_is_a_mistake_in_the_pipeline_file() {
    // TEST-NET-1: nobody's.
    let pipeline = Pipeline::offvia(input()).warm().set("admin.listen=192.0.2.1:9464").set("admin.allow_remote=true");
    let ended = pipeline.run().expect(2);
    assert!(ended.stderr.contains("cannot listen on 192.0.2.1:9464"), "{}", ended.stderr);
    assert!(!pipeline.database().exists(), "nothing was begun");
}

#[test]
fn an_address_that_others_reach_is_refused_by_check_and_run() {
    let pipeline = Pipeline::offvia(input()).warm().set("admin.listen=0.0.0.0:0");
    for ended in [pipeline.check(), pipeline.run()] {
        assert!(ended.expect(2).stderr.contains("allow_remote = true"));
    }
    pipeline.set("admin.allow_remote=true").run().expect(0);
}

/// A run of two pipelines, each with its own settings in its file.
fn two(names: [&str; 2], listen: [&str; 2]) -> ([Pipeline; 2], Command) {
    let pipelines = [0, 1].map(|index| {
        let pipeline = Pipeline::offvia(input());
        let text = std::fs::read_to_string(pipeline.file()).unwrap();
        let name = format!("name = {:?}\n[admin]\nlisten = {:?}\n", names[index], listen[index]);
        std::fs::write(pipeline.file(), text.replace("name = \"test\"\n", &name)).unwrap();
        pipeline
    });
    let mut command = Command::new(paths::preflight());
    command.arg("run").args(pipelines.iter().map(Pipeline::file)).stdin(Stdio::null());
    (pipelines, command)
}

#[test]
fn pipelines_that_name_the_same_address_share_an_endpoint_and_others_have_their_own() {
    for (listen, endpoints) in [(["127.0.0.1:0", "127.0.0.1:0"], 1), (["127.0.0.1:0", "127.0.0.2:0"], 2)] {
        let (_pipelines, mut command) = two(["one", "two"], listen);
        let ended = Ended::from_output(command.output().unwrap()).expect(0);
        assert_eq!(ended.stderr.matches("admin endpoint listens on").count(), endpoints, "{}", ended.stderr);
    }
}

#[test]
fn pipelines_of_the_same_name_are_refused_since_their_metrics_could_not_be_told_apart() {
    let (pipelines, mut command) = two(["one", "one"], ["127.0.0.1:0"; 2]);
    let ended = Ended::from_output(command.output().unwrap()).expect(2);
    assert!(ended.stderr.contains("two of the pipelines are named one"), "{}", ended.stderr);
    assert!(pipelines.iter().all(|pipeline| !pipeline.database().exists()), "nothing was begun");
}
