//! Connections that fail in every way, on the strict fake: each row is there once in the end.

use super::fakes::{append, deliver, fake, is_retryable, large, long_ids, text};
use super::place::{Place, Target, ids};
use preflight::warehouse::{Appended, BigQuery};
use preflight_tests::bigquery::fake::{Call, Ending, Fault, Refusal};
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;

#[tokio::test]
async fn a_lost_answer_leaves_each_row_once() {
    let unavailable = || Ending::Error(Refusal::new(Code::Unavailable, "gone away"));
    for ending in [Ending::Close, Ending::Reset, unavailable()] {
        for fault in [Fault::Before(ending.clone()), Fault::After(ending.clone())] {
            let place = Place::fake();
            let target = Target::new(&place).await;
            let written = matches!(fault, Fault::After(_));
            fake(&place).when(Call::Append).once(fault);
            assert!(is_retryable(&target.append(0, &["a", "b"]).await));
            let expected = if written { Appended::AlreadyThere } else { Appended::Written };
            assert_eq!(target.append(0, &["a", "b"]).await, Ok(expected));
            assert_eq!(target.append(2, &["c"]).await, Ok(Appended::Written));
            fake(&place).content(|content| content.expect_each_once(&target.table, "id", ["a", "b", "c"]));
        }
    }
}

/// The same where the entry takes several requests, at each of them.
#[tokio::test]
async fn a_large_entry_survives_a_fault_at_each_of_its_requests() {
    let ids = long_ids(2_000);
    for nth in 1..=3 {
        for fault in [
            Fault::After(Ending::Reset),
            Fault::Before(Ending::Close),
            Fault::answer(Code::ResourceExhausted),
            Fault::AnswerAfter(Refusal::new(Code::Internal, "after all")),
        ] {
            let place = Place::fake();
            let target = Target::new(&place).await;
            let entry = large(&target, &ids);
            fake(&place).when(Call::Append).from(nth).once(fault.clone());
            let first = text(append(&target, &entry).await);
            // What failed behind it failed for it.
            assert!(!first.contains("OUT_OF_RANGE"), "{fault:?}: {first}");
            deliver(&target, &entry).await;
            let appends = fake(&place).content(|content| {
                content.expect_each_once(&target.table, "id", &ids);
                content.appends(&target.table)
            });
            for sent in &appends {
                let same = appends.iter().filter(|other| other.offset == sent.offset);
                assert!(same.clone().all(|other| other.digest == sent.digest), "{fault:?}: {appends:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_hangs_is_given_up_and_the_request_repeated() {
    let place = Place::fake();
    for (from, fault, appended) in
        [(1, Fault::Before(Ending::Hang), Appended::Written), (1, Fault::After(Ending::Hang), Appended::AlreadyThere)]
    {
        let mut target = Target::over(&place, place.open().await, table(&place).await, "s").await;
        let mut config = place.bigquery();
        config.request_timeout = Duration::from_millis(300);
        target.warehouse = Arc::new(BigQuery::connect(&config).await.unwrap());
        let rule = fake(&place).when(Call::Append).from(from).once(fault);
        let error = text(target.append(0, &["a"]).await);
        assert!(error.contains("no answer within 0.3 s"), "{error}");
        assert_eq!(fake(&place).content(|content| content.hits(rule)), 1);
        target.warehouse = place.open().await;
        assert_eq!(target.append(0, &["a"]).await, Ok(appended));
    }
}

async fn table(place: &Place) -> String {
    let table = place.table("t");
    place.open().await.create_table(ids(&table)).await.unwrap();
    table
}

/// That it is there already may be said by the end of the call: what is behind goes to a new one.
#[tokio::test]
async fn an_already_there_that_ends_the_call_counts_for_its_request_alone() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let ids = long_ids(2_000);
    let entry = large(&target, &ids);
    let there = || Fault::After(Ending::Error(Refusal::new(Code::AlreadyExists, "it is there")));
    fake(&place).when(Call::Append).times(2, there());
    // The last request was written by this call; but what is there in part before is no entry of this call alone.
    assert_eq!(append(&target, &entry).await, Ok(Appended::AlreadyThere));
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", &ids));
    fake(&place).when(Call::Append).times(3, Fault::Before(Ending::Error(Refusal::new(Code::AlreadyExists, "yes"))));
    assert_eq!(append(&target, &entry).await, Ok(Appended::AlreadyThere));
}

/// Once was tried again for ever: what is there already aborted what is behind it, and each try began with what is there.
#[tokio::test]
async fn what_is_aborted_behind_an_already_there_goes_to_a_new_connection() {
    let ids = long_ids(4_000);
    for lost in 1..=5 {
        let place = Place::fake();
        fake(&place).abort_behind_errors();
        let target = Target::new(&place).await;
        let entry = large(&target, &ids);
        fake(&place).when(Call::Append).from(lost).once(Fault::After(Ending::Reset));
        assert!(is_retryable(&append(&target, &entry).await), "{lost}");
        assert_eq!(append(&target, &entry).await, Ok(Appended::AlreadyThere), "{lost}");
        fake(&place).content(|content| content.expect_each_once(&target.table, "id", &ids));
        assert_eq!(target.append(4_000, &["next"]).await, Ok(Appended::Written), "{lost}");
    }
}

/// Aborted though it is there: by this call's own send, not by another writer's.
#[tokio::test]
async fn what_was_aborted_after_it_was_written_is_no_other_writers() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let ids = long_ids(4_000);
    let entry = large(&target, &ids);
    let aborted = Refusal::new(Code::Aborted, "after all");
    fake(&place).when(Call::Append).from(2).once(Fault::AnswerAfter(aborted.clone()));
    assert_eq!(append(&target, &entry).await, Ok(Appended::Written));
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", &ids));
    // The first request of a new connection that is aborted is no progress.
    fake(&place).when(Call::Append).times(2, Fault::Answer(aborted));
    assert!(is_retryable(&target.append(4_000, &["next"]).await));
    assert_eq!(target.append(4_000, &["next"]).await, Ok(Appended::Written));
}

/// The server closes a connection that nobody has used for ten minutes: that is no failure to be told of.
#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_opened_again() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let inactive = Ending::Error(Refusal::new(Code::Aborted, "inactive for 600 seconds"));
    for ((offset, id), ending) in (0..).zip(["a", "b"]).zip([Ending::Close, inactive]) {
        fake(&place).when(Call::Append).once(Fault::Behind(ending));
        assert_eq!(target.append(offset, &[id]).await, Ok(Appended::Written));
    }
    assert_eq!(target.append(2, &["c"]).await, Ok(Appended::Written));
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", ["a", "b", "c"]));
}

/// Everything at once, for as long as it takes: the content log has each row once.
#[tokio::test]
async fn random_faults_leave_each_row_once() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let resource = Refusal::new(Code::ResourceExhausted, "too much");
    let faults = vec![
        Fault::Before(Ending::Close),
        Fault::After(Ending::Reset),
        Fault::Behind(Ending::Close),
        Fault::status(Code::Unavailable),
        Fault::After(Ending::Error(Refusal::new(Code::Internal, "lost"))),
        Fault::Answer(resource.clone()),
        Fault::AnswerAfter(resource),
    ];
    fake(&place).at_random(7, 0.3, &[Call::Append], faults);
    let mut all = Vec::new();
    for commit in 0..60 {
        let ids: Vec<String> = (0..5).map(|row| format!("{commit:02}-{row}")).collect();
        let borrowed: Vec<&str> = ids.iter().map(String::as_str).collect();
        let entry = target.entry(commit * 5, &borrowed);
        deliver(&target, &entry).await;
        all.extend(ids);
    }
    assert!(fake(&place).stop_random() > 10);
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", &all));
}
