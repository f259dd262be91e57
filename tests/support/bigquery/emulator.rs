//! The BigQuery emulator `bqemulator`, as a process of its own on free ports of this machine.
//!
//! One serves all tests of a process; each test makes a dataset of its own. It ends when this process does, however that
//! happens: it watches its standard input, whose other end only this process has.

use crate::{http, paths};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// The project of all datasets.
pub const PROJECT: &str = "preflight-test";

/// Longer than it takes to start.
const STARTS: Duration = Duration::from_mins(1);

/// Starts the emulator, and ends it with the end of its standard input.
///
/// It has one connection to its database for all its threads, and a statement of one ends or blocks that of another: here
/// each thread has its own. An open stream takes two threads of a pool that has four more than there are cores, so that a
/// fourth stream waits until another ends: here there are threads enough. And it keeps a copy of a table for each change of
/// it, which nobody here reads.
const BOOT: &str = "
import os, sys, threading
from concurrent.futures import ThreadPoolExecutor
start = ThreadPoolExecutor.__init__
def start_large(pool, max_workers=None, *rest, **named):
    start(pool, max_workers or 64, *rest, **named)
ThreadPoolExecutor.__init__ = start_large
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from bqemulator.cli import main
from bqemulator.storage.engine import DuckDBEngine
from bqemulator.versioning.snapshots import SnapshotManager
shared, own, main_thread = DuckDBEngine.connection.fget, threading.local(), threading.get_ident()
def connection(engine):
    if threading.get_ident() == main_thread:
        return shared(engine)
    if not hasattr(own, 'connection'):
        own.connection = shared(engine).cursor()
        own.connection.execute(\"SET TimeZone = 'UTC'\")
    return own.connection
DuckDBEngine.connection = property(connection)
SnapshotManager.capture = lambda *table, **kind: None
main()
";

/// A running emulator. Dropping it ends it.
pub struct Emulator {
    child: Child,
    _alive: ChildStdin,
    rest: String,
    storage: String,
}

impl Emulator {
    /// The one that the tests of this process share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Emulator> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts one, and waits until it takes requests.
    pub fn start() -> Self {
        let venv = venv();
        let mut child = Command::new(venv.join("bin/python"))
            .args(["-c", BOOT, "start", "--rest-port", "0", "--grpc-port", "0", "--log-format", "json"])
            .args(["--project", PROJECT])
            .env("HOME", venv.join("home"))
            .env("PYTHONUNBUFFERED", "1")
            .current_dir(&venv)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the emulator can be started");
        let alive = child.stdin.take().expect("it is piped");
        let log = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
        let (line, lines) = mpsc::channel();
        // Its log is read to the end, wanted or not: it must never wait for a reader.
        thread::spawn(move || log.for_each(|text| drop(line.send(text))));
        // In the order in which it says them. Once it has said the second, both are served.
        let rest = address(&lines, "rest.listen");
        let storage = address(&lines, "grpc.listen");
        Self { child, _alive: alive, rest, storage }
    }

    /// Where the REST interface is: host and port.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// Where the Storage Write interface is: host and port.
    pub fn storage(&self) -> &str {
        &self.storage
    }

    /// Makes an empty dataset with a name of its own, which begins with `name`.
    pub fn dataset(&self, name: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let dataset = format!("{name}_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "datasetReference": { "projectId": PROJECT, "datasetId": dataset } });
        let path = format!("/bigquery/v2/projects/{PROJECT}/datasets");
        let answer = http::post(&self.rest, &path, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        dataset
    }

    /// Runs a statement and gives its rows, every value as text or null, by the names of the columns.
    #[track_caller]
    pub fn query(&self, sql: &str) -> Vec<Map<String, Value>> {
        let body = json!({ "query": sql, "useLegacySql": false, "maxResults": 10_000_000 });
        let answer = http::post(&self.rest, &format!("/bigquery/v2/projects/{PROJECT}/queries"), &body);
        assert_eq!(answer.status, 200, "{sql}: {answer:?}");
        let answer = answer.json();
        // It says that a statement failed in an answer that is otherwise good.
        assert!(list(&answer["errors"]).is_empty(), "{sql}: {}", answer["errors"]);
        assert!(answer.get("pageToken").is_none(), "{sql}: the answer is too long");
        let names: Vec<&str> =
            list(&answer["schema"]["fields"]).iter().filter_map(|field| field["name"].as_str()).collect();
        let row = |row: &Value| {
            let values = list(&row["f"]).iter().map(|cell| cell["v"].clone());
            names.iter().map(|&name| name.to_owned()).zip(values).collect()
        };
        list(&answer["rows"]).iter().map(row).collect()
    }

    /// Adds a STRING column to a table. Its catalog and its database do not tell each other of that.
    pub fn add_column(&self, dataset: &str, table: &str, column: &str) {
        let path = format!("/bigquery/v2/projects/{PROJECT}/datasets/{dataset}/tables/{table}");
        let mut schema = http::send("GET", &self.rest, &path, &Value::Null).json()["schema"].clone();
        schema["fields"].as_array_mut().expect("a table has fields").push(json!({ "name": column, "type": "STRING" }));
        self.query(&format!("ALTER TABLE `{dataset}.{table}` ADD COLUMN {column} STRING"));
        let answer = http::send("PATCH", &self.rest, &path, &json!({ "schema": schema }));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// The first value of the first row of a query, as text; null is "null".
    #[track_caller]
    pub fn value(&self, sql: &str) -> String {
        let rows = self.query(sql);
        let value = rows.first().and_then(|row| row.values().next()).unwrap_or_else(|| panic!("{sql}: no row"));
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // It may have ended: then there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Reads its log up to where it says on which address it serves something.
fn address(log: &mpsc::Receiver<String>, event: &str) -> String {
    let mut seen = String::new();
    while let Ok(line) = log.recv_timeout(STARTS) {
        if let Ok(said) = serde_json::from_str::<Value>(&line)
            && said["event"] == event
        {
            return format!("127.0.0.1:{}", said["port"]);
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    panic!("the BigQuery emulator did not come to {event}:\n{seen}");
}

fn venv() -> PathBuf {
    let venv = paths::root().join("target/venv-bigquery");
    assert!(
        venv.join("installed.txt").exists(),
        "{} is missing: `cargo xtask test` makes it before it runs the tests",
        venv.display()
    );
    venv
}
