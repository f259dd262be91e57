//! Streams that the warehouse has forgotten: what is in the table is not written again, the rest is, and where that cannot
//! be told nothing is written.

use preflight::config::{Config, Layers};
use preflight::ledger::{Additions, Ledger};
use preflight::pipeline::deliver::Delivery;
use preflight::pipeline::evaluate::{Context, Evaluated, Evaluators};
use preflight::pipeline::prepare;
use preflight::pipeline::retry::Patience;
use preflight::source::{Batch, Leases};
use preflight::telemetry::status::Board;
use preflight::time::{Clock, SystemClock};
use preflight::warehouse::events::{Resolution, Resolved};
use preflight::warehouse::{self, Tier};
use preflight_tests::forgetful::{Forgetful, Lost};
use preflight_tests::{Pipeline, bookings, events, tables};
use rusqlite::Connection;
use std::sync::Arc;
use std::time::Duration;

/// A pipeline's delivery, with what judges for it.
struct Run {
    delivery: Delivery,
    evaluators: Evaluators,
    context: Context,
    lost: Arc<Lost>,
    batches: usize,
}

impl Run {
    async fn start(pipeline: &Pipeline, lifetime: Duration) -> Self {
        let layers = Layers::load(&pipeline.file(), &[""; 0], &pipeline.settings).unwrap();
        let config = Config::from_layers(&layers).unwrap();
        let prepared = prepare(&config).unwrap();
        let lost: Arc<Lost> = Arc::default();
        let inner = warehouse::open(&config.warehouse).await.unwrap();
        let warehouse = Forgetful { inner, lifetime, lost: Arc::clone(&lost) };
        let ledger = Ledger::open(&config.ledger, &config.name, warehouse.inner.identity()).unwrap();
        for table in prepared.new_tables {
            warehouse.inner.create_table(table).await.unwrap();
        }
        let plan = Arc::new(prepared.plan);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let board = Board::new([config.name.as_str()], &clock);
        let (metrics, status) = &board.pipelines()[0];
        let patience = Patience::new(Duration::ZERO, metrics, status);
        let delivery = Delivery::new(ledger, Arc::new(warehouse), Arc::clone(&plan), patience, metrics.clone());
        let evaluators =
            Evaluators::start(&prepared.sandbox, &config.limits, config.rules.isolation, config.threads, None, metrics)
                .unwrap();
        let context = Context { rules: prepared.rules, plan, pairs: [].into() };
        Self { delivery, evaluators, context, lost, batches: 0 }
    }

    /// Commits a micro-batch of so many bookings.
    async fn commit(&mut self, bookings: usize) {
        let judged = self.judge(bookings).await;
        self.delivery
            .ledger
            .call(move |ledger| ledger.commit(&judged.parts, &judged.originals, None, &Additions::default()))
            .await
            .unwrap();
    }

    /// Commits what a replay of so many bookings comes to.
    async fn commit_replay(&mut self, bookings: usize) {
        let judged = self.judge(bookings).await;
        let resolved = |number: u32| Resolved {
            event: number,
            id: i64::from(number),
            message_id: format!("batch-{}:{}", self.batches, number + 1),
            digest: "sha256:of-the-rule".into(),
            version: Some("1".into()),
        };
        let rows = (0..u32::try_from(bookings).unwrap()).map(resolved).collect();
        let (table, pipeline, by) = ("poisoned_events".into(), "test".into(), "somebody".into());
        let resolution = Resolution { table, pipeline, at: 0, by, rows };
        let silver: Vec<_> = judged.parts.into_iter().filter(|part| part.tier == Tier::Silver).collect();
        self.delivery
            .ledger
            .call(move |ledger| ledger.commit_replay(&silver, &resolution, &Additions::default()))
            .await
            .unwrap();
    }

    async fn judge(&mut self, bookings: usize) -> Evaluated {
        self.batches += 1;
        let events = events::from_lines(&format!("batch-{}", self.batches), &bookings::good(bookings));
        let batch = Batch { events, position: None, leases: Leases::default() };
        let judged = self.evaluators.submit(batch.into(), &self.context).await.unwrap();
        for part in judged.parts.iter().filter(|part| !part.rows.is_empty()) {
            self.delivery.ensure_stream(part.tier).await.unwrap();
        }
        judged
    }

    async fn silver_stream(&self) -> String {
        self.delivery.ledger.call(|ledger| Ok(ledger.stream(Tier::Silver).unwrap().name.clone())).await.unwrap()
    }
}

fn silver(pipeline: &Pipeline) -> Vec<String> {
    let rows = tables::tiers(&pipeline.database()).silver;
    rows.iter().map(|row| row["source_message_id"].as_str().unwrap().to_owned()).collect()
}

/// The run after one that made three commits of two bookings and sent nothing.
async fn three_undone(pipeline: &Pipeline) -> Run {
    let mut run = Run::start(pipeline, Duration::MAX).await;
    for _ in 0..3 {
        run.commit(2).await;
    }
    drop(run);
    Run::start(pipeline, Duration::MAX).await
}

/// Forgets silver's stream, after so many of its rows got through and their confirmation was lost. `finalized` ones are
/// remembered with their count.
async fn forget(pipeline: &Pipeline, run: &Run, sent: usize) {
    let entries = run.delivery.ledger.call(|ledger| ledger.undone_entries(Tier::Silver)).await.unwrap();
    let first: Vec<_> = entries.into_iter().take(sent).map(|(_, entry)| entry).collect();
    for sent in run.delivery.warehouse.append(Arc::new(first)).await {
        sent.unwrap();
    }
    let name = run.silver_stream().await;
    let database = Connection::open(pipeline.database()).unwrap();
    assert_eq!(database.execute("DELETE FROM preflight_streams WHERE name = ?1", [name]).unwrap(), 1);
}

const ALL: [&str; 6] = ["batch-1:1", "batch-1:2", "batch-2:1", "batch-2:2", "batch-3:1", "batch-3:2"];

#[tokio::test]
async fn what_a_forgotten_stream_had_written_is_found_by_its_message_ids() {
    for sent in 0..=3 {
        let pipeline = Pipeline::offvia("").warm();
        let run = three_undone(&pipeline).await;
        let old = run.silver_stream().await;
        forget(&pipeline, &run, sent).await;
        run.delivery.resume().await.unwrap();
        assert_eq!(silver(&pipeline), ALL, "{sent} commits had got through");
        assert_eq!(tables::tiers(&pipeline.database()).bronze.len(), 6);
        let streams = tables::query(
            &pipeline.database(),
            "SELECT name, row_count FROM preflight_streams WHERE table_name = 'fact_bookings'",
        );
        assert!(streams.iter().all(|stream| stream["name"] != old.as_str()), "{streams:?}");
        let rows: u64 = streams.iter().map(|stream| stream["row_count"].as_u64().unwrap()).sum();
        assert_eq!(rows, (6 - 2 * sent) as u64, "only the rest went through the new stream");
    }
}

/// A replay has no originals in the ledger: its events are in quarantine.
#[tokio::test]
async fn what_a_replay_had_written_to_a_forgotten_stream_is_found_by_its_message_ids() {
    for sent in 0..=3 {
        let pipeline = Pipeline::offvia("").warm();
        let mut run = Run::start(&pipeline, Duration::MAX).await;
        run.commit(2).await;
        run.commit_replay(2).await;
        run.commit_replay(2).await;
        drop(run);
        let run = Run::start(&pipeline, Duration::MAX).await;
        forget(&pipeline, &run, sent).await;
        run.delivery.resume().await.unwrap();
        assert_eq!(silver(&pipeline), ALL, "{sent} commits had got through");
    }
}

/// Who sent it did not wait for the answer, as when the time to finish is over, and another sends it again: what is there is
/// nobody else's.
#[tokio::test]
async fn what_was_sent_by_one_that_was_given_up_is_ours() {
    let pipeline = Pipeline::offvia("").warm();
    let mut run = Run::start(&pipeline, Duration::MAX).await;
    run.commit(2).await;
    run.lost.the_next();
    tokio::select! {
        sent = run.delivery.deliver_all() => panic!("it was answered: {sent:?}"),
        () = run.lost.written() => {}
    }
    run.delivery.deliver_all().await.unwrap();
    assert_eq!(silver(&pipeline), ALL[..2]);
    run.delivery.resume().await.unwrap();
    assert_eq!(silver(&pipeline), ALL[..2]);
}

#[tokio::test]
async fn the_count_of_a_stream_that_was_finalized_says_what_is_written() {
    let pipeline = Pipeline::offvia("").warm();
    let run = three_undone(&pipeline).await;
    let name = run.silver_stream().await;
    let first = run.delivery.ledger.call(|ledger| ledger.undone_entries(Tier::Silver)).await.unwrap().remove(0).1;
    run.delivery.warehouse.append(Arc::new(vec![first])).await.remove(0).unwrap();
    run.delivery.warehouse.finalize_stream(&name).await.unwrap();
    // By the ids alone it would be in the table.
    let database = Connection::open(pipeline.database()).unwrap();
    database
        .execute("UPDATE fact_bookings SET source_message_id = 'batch-2:1' WHERE source_message_id = 'batch-1:1'", [])
        .unwrap();
    run.delivery.resume().await.unwrap();
    assert_eq!(silver(&pipeline), ["batch-2:1", "batch-1:2", "batch-2:1", "batch-2:2", "batch-3:1", "batch-3:2"]);
}

#[tokio::test]
async fn where_it_cannot_be_told_what_is_written_nothing_is() {
    let pipeline = Pipeline::offvia("").warm();
    let run = three_undone(&pipeline).await;
    forget(&pipeline, &run, 2).await;
    let database = Connection::open(pipeline.database()).unwrap();
    // The first commit is missing, the second is there: nobody writes so.
    database.execute("DELETE FROM fact_bookings WHERE source_message_id LIKE 'batch-1:%'", []).unwrap();
    let error = run.delivery.resume().await.unwrap_err().to_string();
    assert!(error.contains("silver") && error.contains("cannot be told") && error.contains("--new-ledger"), "{error}");
    assert_eq!(silver(&pipeline), ["batch-2:1", "batch-2:2"]);
}

#[tokio::test]
async fn without_a_column_of_message_ids_it_cannot_be_told() {
    let pipeline = Pipeline::offvia("").warm();
    let run = three_undone(&pipeline).await;
    forget(&pipeline, &run, 0).await;
    let mut plan = preflight::pipeline::plan::Plan::clone(&run.context.plan);
    plan.silver.message_id = None;
    run.delivery.replan(Arc::new(plan));
    let error = run.delivery.resume().await.unwrap_err().to_string();
    assert!(error.contains("cannot be told"), "{error}");
    assert_eq!(silver(&pipeline), [""; 0]);
}

/// A stream with more rows than were ever bound to it: the ledger is older than the table.
#[tokio::test]
async fn a_stream_that_has_more_rows_than_the_ledger_bound_is_not_replaced() {
    let pipeline = Pipeline::offvia("").warm();
    let run = three_undone(&pipeline).await;
    let name = run.silver_stream().await;
    let database = Connection::open(pipeline.database()).unwrap();
    database.execute("UPDATE preflight_streams SET row_count = 7, finalized = 1 WHERE name = ?1", [name]).unwrap();
    let error = run.delivery.resume().await.unwrap_err().to_string();
    assert!(error.contains("7 rows") && error.contains("not of the same time"), "{error}");
    assert_eq!(silver(&pipeline), [""; 0]);
}

#[tokio::test]
async fn a_stream_that_was_left_alone_for_its_lifetime_is_replaced_before_it_is_written_to() {
    let pipeline = Pipeline::offvia("").warm();
    let mut run = Run::start(&pipeline, Duration::ZERO).await;
    run.commit(2).await;
    let first = run.silver_stream().await;
    // Its rows wait to be sent: it is not replaced.
    run.commit(1).await;
    assert_eq!(run.silver_stream().await, first);
    run.delivery.deliver_all().await.unwrap();
    run.commit(1).await;
    assert_ne!(run.silver_stream().await, first);
    run.delivery.deliver_all().await.unwrap();
    run.delivery.resume().await.unwrap();
    assert_eq!(silver(&pipeline), ["batch-1:1", "batch-1:2", "batch-2:1", "batch-3:1"]);
}
