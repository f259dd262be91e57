//! A full disk stops a worker for as long as it is full, and costs no row.

use preflight_tests::{Pipeline, Running, SmallDisk, bookings, tables};
use std::time::{Duration, Instant};

const EVENTS: usize = 6_000;
/// Far less than what this many events need, in the warehouse and in the ledger.
const ROOM: usize = 1 << 20;
const GIVE_UP: Duration = Duration::from_secs(1);

fn pipeline() -> Pipeline {
    let pipeline = Pipeline::offvia(bookings::lines(EVENTS)).warm();
    pipeline.set("batch.max_events=200").set("warehouse.sqlite.give_up_after=1 s")
}

/// A pipeline whose database lies on a small disk, and its ledger elsewhere.
fn with_warehouse_on(disk: &SmallDisk) -> Pipeline {
    let database = disk.path("warehouse.db").display().to_string();
    disk.limit(pipeline().set(format!("warehouse.sqlite.path={database}")).set("ledger.path=ledger"))
}

/// The other way round.
fn with_ledger_on(disk: &SmallDisk) -> Pipeline {
    disk.limit(pipeline().set(format!("ledger.path={}", disk.path("ledger").display())))
}

#[track_caller]
fn gives_up_and_says(pipeline: &Pipeline, words: &[&str]) {
    let started = Instant::now();
    let ended = pipeline.run().expect(1);
    assert!(started.elapsed() >= GIVE_UP, "it did not try for as long as it may");
    assert!(ended.stderr.contains("trying again"), "{}", ended.stderr);
    let error = ended.stderr.lines().last().unwrap_or_default();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

fn expected() -> tables::Tiers {
    let pipeline = pipeline();
    pipeline.run().expect(0);
    tables::tiers(&pipeline.database())
}

#[test]
fn a_full_disk_under_the_warehouse_loses_nothing() {
    let disk = SmallDisk::new(ROOM);
    let pipeline = with_warehouse_on(&disk);
    let words = ["cannot write to", "disk is full", "Nothing is lost"];
    gives_up_and_says(&pipeline, if disk.is_separate() { &words } else { &["cannot"] });
    let pipeline = disk.emptied(pipeline);
    let report = pipeline.run().expect(0).json();
    assert!(!disk.is_separate() || report["resumed_commits"].as_u64().unwrap() > 0);
    tables::tiers(&disk.path("warehouse.db")).expect(&expected(), "after the disk was full");
}

#[test]
fn a_full_disk_under_the_ledger_loses_nothing() {
    let disk = SmallDisk::new(ROOM);
    let pipeline = with_ledger_on(&disk);
    let ledger = disk.path("ledger").display().to_string();
    let words = ["the ledger", &ledger, "cannot be written", "disk is full"];
    gives_up_and_says(&pipeline, if disk.is_separate() { &words } else { &["cannot"] });
    let pipeline = disk.emptied(pipeline);
    pipeline.run().expect(0);
    tables::tiers(&pipeline.database()).expect(&expected(), "after the disk was full");
}

#[test]
fn a_worker_goes_on_by_itself_when_the_warehouse_has_room_again() {
    let disk = SmallDisk::new(ROOM);
    let pipeline = with_warehouse_on(&disk);
    goes_on_by_itself(&disk, pipeline);
    tables::tiers(&disk.path("warehouse.db")).expect(&expected(), "after room was made");
}

#[test]
fn a_worker_goes_on_by_itself_when_the_ledger_has_room_again() {
    let disk = SmallDisk::new(ROOM);
    let pipeline = goes_on_by_itself(&disk, with_ledger_on(&disk));
    tables::tiers(&pipeline.database()).expect(&expected(), "after room was made");
}

fn goes_on_by_itself(disk: &SmallDisk, pipeline: Pipeline) -> Pipeline {
    let pipeline = pipeline.set("warehouse.sqlite.give_up_after=60 s");
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_for_log("trying again");
    disk.make_room(run.id());
    assert_eq!(run.finish().expect(0).json()["events"], EVENTS);
    pipeline
}
