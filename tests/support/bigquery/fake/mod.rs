//! A strict fake of BigQuery: the Storage Write interface (gRPC), and the part of REST that a worker needs.
//!
//! It refuses what BigQuery refuses, and more: an append to a stream must say its offset, and its calls the routing header.
//! It keeps every row that got in, so that a test can tell what is missing and what is there twice. It runs in the test's
//! process, so it survives the workers that the test kills. What goes wrong is scripted, or random by a seed.

mod append;
mod change;
mod content;
mod decode;
mod faults;
mod jobs;
mod refusal;
mod rest;
mod service;
mod state;
mod table;
mod value;
mod when;
mod wire;

pub use append::MAX_REQUEST;
pub use content::{Content, Place};
pub use faults::{Call, Ending, Fault, RowTest, RuleId};
pub use googleapis_tonic_google_cloud_bigquery_storage_v1::google::cloud::bigquery::storage::v1 as api;
pub use googleapis_tonic_google_cloud_bigquery_storage_v1::google::rpc;
pub use refusal::Refusal;
pub use state::{Append, FinalizeAgain};
pub use when::When;

use futures::stream;
use service::Service;
use state::State;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use table::{Column, Created};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use wire::Wire;

/// The project of all tables.
pub const PROJECT: &str = "preflight-test";

/// Longer than anything takes that a test waits for.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the servers and the test share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something and tells whoever waits for it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changed.notify_all();
        result
    }
}

/// A running fake. Dropping it ends it, and every connection to it.
pub struct Fake {
    shared: Arc<Shared>,
    rest: SocketAddr,
    storage: SocketAddr,
    runtime: Option<Runtime>,
}

impl Default for Fake {
    fn default() -> Self {
        Self::start()
    }
}

impl Fake {
    /// Starts one without tables.
    pub fn start() -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime can be started");
        let listen = || async { TcpListener::bind("127.0.0.1:0").await.expect("a free port can be had") };
        let (rest_listener, storage_listener) = runtime.block_on(async { (listen().await, listen().await) });
        let address = |listener: &TcpListener| listener.local_addr().expect("it listens");
        let (rest, storage) = (address(&rest_listener), address(&storage_listener));
        let router = rest::router(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(rest_listener, router).await });
        let service = Service(Arc::clone(&shared));
        runtime.spawn(async move {
            let wires = stream::unfold(storage_listener, |listener| async {
                let wire = listener.accept().await.map(|(tcp, _)| Wire::new(tcp));
                Some((wire, listener))
            });
            tonic::transport::Server::builder().add_service(service).serve_with_incoming(wires).await
        });
        Self { shared, rest, storage, runtime: Some(runtime) }
    }

    /// Where the REST interface is.
    pub fn rest(&self) -> SocketAddr {
        self.rest
    }

    /// Where the Storage Write interface is.
    pub fn storage(&self) -> SocketAddr {
        self.storage
    }

    /// Makes a table: `CREATE TABLE dataset.table (…) …`.
    #[track_caller]
    pub fn create_table(&self, sql: &str) {
        let Created { name, table, .. } = Created::parse(sql).unwrap_or_else(|why| panic!("{why}"));
        let before = self.shared.change(|state| state.tables.insert(path_in(PROJECT, &name), table));
        assert!(before.is_none(), "there is a table {name} already");
    }

    /// Drops a table. Its rows stay in the content.
    pub fn drop_table(&self, table: &str) {
        self.shared.change(|state| state.tables.remove(&path_in(PROJECT, table)));
    }

    /// Adds a column: `name TYPE`. The Storage Write interface learns of it now or when it is told to catch up.
    #[track_caller]
    pub fn add_column(&self, table: &str, column: &str, known_at_once: bool) {
        let column = Column::parse(column).unwrap_or_else(|why| panic!("{why}"));
        self.change_columns(table, known_at_once, |columns| columns.push(column));
    }

    /// Drops a column. The Storage Write interface learns of it now or when it is told to catch up.
    pub fn drop_column(&self, table: &str, column: &str, known_at_once: bool) {
        self.change_columns(table, known_at_once, |columns| columns.retain(|known| known.name != column));
    }

    fn change_columns(&self, table: &str, known_at_once: bool, change: impl FnOnce(&mut Vec<Column>)) {
        self.shared.change(|state| {
            let table = state.tables.get_mut(&path_in(PROJECT, table)).expect("the table is there");
            let mut columns = table.columns.clone();
            change(&mut columns);
            table.change(columns, known_at_once);
        });
    }

    /// The Storage Write interface learns the columns of a table.
    pub fn catch_up(&self, table: &str) {
        self.shared.change(|state| {
            let table = state.tables.get_mut(&path_in(PROJECT, table)).expect("the table is there");
            table.catch_up();
        });
    }

    /// From now on queries of a table must name its partitions.
    pub fn require_partition_filter(&self, table: &str) {
        self.shared.change(|state| {
            let table = state.tables.get_mut(&path_in(PROJECT, table)).expect("the table is there");
            table.require_partition_filter = true;
        });
    }

    /// From now on rows that were streamed count as old, as they do in BigQuery after half an hour.
    pub fn half_an_hour_passes(&self) {
        self.shared.change(|state| state.forgets_streamed = true);
    }

    /// Forgets the streams of a table, as BigQuery does with those that nobody has used for days.
    pub fn expire_streams(&self, table: &str) {
        let path = path_in(PROJECT, table);
        self.shared.change(|state| state.streams.retain(|_, stream| stream.table != path));
    }

    /// Appends rows to a stream as another writer would.
    pub fn someone_writes(&self, stream: &str, rows: u64) {
        self.shared.change(|state| state.someone_writes(stream, rows));
    }

    /// Finalizes a stream as another worker would.
    #[track_caller]
    pub fn someone_finalizes(&self, stream: &str) {
        let finalized = self.shared.change(|state| state.finalize(stream));
        assert!(finalized.is_ok(), "{finalized:?}");
    }

    /// Says what is done about a stream that is finalized again.
    pub fn finalize_again(&self, what: FinalizeAgain) {
        self.shared.change(|state| state.finalize_again = what);
    }

    /// From now on a call in which a request was answered with an error, be it that its rows are there already, answers all
    /// further requests that they are aborted.
    pub fn abort_behind_errors(&self) {
        self.shared.change(|state| state.aborts_behind_errors = true);
    }

    /// From now on a table refuses rows for which the test gives a reason, whatever else goes wrong.
    pub fn refuse_rows(&self, table: &str, test: RowTest) {
        self.shared.change(|state| state.refused_rows.push((path_in(PROJECT, table), test)));
    }

    /// Begins a rule: what goes wrong with a call.
    pub fn when(&self, call: Call) -> When<'_> {
        When::new(self, call)
    }

    /// Ends a rule. What it held goes on.
    pub fn lift(&self, rule: RuleId) {
        self.shared.change(|state| state.faults.lift(rule));
    }

    /// From now on such calls fail at random, at this rate, in one of these ways. The same seed gives the same faults for the
    /// same calls.
    pub fn at_random(&self, seed: u64, rate: f64, calls: &[Call], faults: Vec<Fault>) {
        self.shared.change(|state| state.faults.at_random(seed, rate, calls, faults));
    }

    /// Ends that, and says how many calls failed by it.
    pub fn stop_random(&self) -> u64 {
        self.shared.change(|state| state.faults.stop_random())
    }

    /// Looks at what got in.
    pub fn content<T>(&self, look: impl FnOnce(Content<'_>) -> T) -> T {
        look(Content(&self.shared.state()))
    }

    /// How many rows a table has.
    pub fn count(&self, table: &str) -> usize {
        self.content(|content| content.count(table))
    }

    /// Waits until something is so, at most for so long. Says whether it came to be so.
    pub fn wait_for(&self, limit: Duration, is_so: impl Fn(Content<'_>) -> bool) -> bool {
        let state = self.shared.state();
        let waited = self.shared.changed.wait_timeout_while(state, limit, |state| !is_so(Content(state)));
        let (_state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out()
    }

    /// Waits until something is so. Fails when that takes too long.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(Content<'_>) -> bool) {
        assert!(self.wait_for(PATIENCE, is_so), "this never came: {what}");
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The path of a table's resource: `[project.]dataset.table`.
fn path_in(project: &str, name: &str) -> String {
    let mut parts = name.rsplitn(3, '.');
    let (table, dataset) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let project = parts.next().unwrap_or(project);
    format!("projects/{project}/datasets/{dataset}/tables/{table}")
}

/// The path of a stream's table.
fn table_of(stream: &str) -> &str {
    stream.split("/streams/").next().unwrap_or_default()
}
