//! Everything that an append may meet, on the strict fake: each row is there once in the end.

use super::place::{Place, Target, layout};
use preflight::row::ValueRef;
use preflight::warehouse::{AppendError, Appended, BigQuery, Entry, RowSet};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::api::storage_error::StorageErrorCode;
use preflight_tests::bigquery::fake::{Call, Ending, Fault, Refusal};
use std::sync::Arc;
use std::time::Duration;
use tonic::Code;

fn fake(place: &Place) -> &Fake {
    let Place::Fake(fake) = place else { panic!("these faults are the fake's") };
    fake
}

fn ids(rows: usize) -> Vec<String> {
    (0..rows).map(|row| format!("{row:04}{}", "x".repeat(1_000))).collect()
}

/// An entry of several requests: 2,000 rows of a kilobyte.
fn large(target: &Target<'_>, ids: &[String]) -> Entry {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    target.entry(0, &ids)
}

async fn append(target: &Target<'_>, entry: &Entry) -> Result<Appended, AppendError> {
    target.append_all(vec![entry.clone()]).await.remove(0)
}

fn is_retryable(result: &Result<Appended, AppendError>) -> bool {
    matches!(result, Err(AppendError::Retryable(_)))
}

#[track_caller]
fn text(result: Result<Appended, AppendError>) -> String {
    match result {
        Err(AppendError::Retryable(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Sent again until it is there, as delivery does.
async fn deliver(target: &Target<'_>, entry: &Entry) -> Appended {
    for _ in 0..20 {
        match append(target, entry).await {
            Ok(appended) => return appended,
            Err(AppendError::Retryable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it is never written")
}

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
    let ids = ids(2_000);
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
    place.open().await.create_table(super::place::ids(&table)).await.unwrap();
    table
}

#[tokio::test]
async fn what_may_pass_is_retryable_however_it_comes() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let codes = [
        Code::Unavailable,
        Code::Aborted,
        Code::Cancelled,
        Code::Internal,
        Code::DeadlineExceeded,
        Code::Unknown,
        Code::ResourceExhausted,
        Code::Unauthenticated,
        Code::PermissionDenied,
    ];
    for code in codes {
        for fault in [Fault::status(code), Fault::answer(code)] {
            let rule = fake(&place).when(Call::Append).always(fault.clone());
            let error = text(target.append(0, &["a"]).await);
            assert!(error.contains(&target.layout.table), "{fault:?}: {error}");
            fake(&place).lift(rule);
        }
    }
    assert_eq!(target.append(0, &["a"]).await, Ok(Appended::Written));
}

#[tokio::test]
async fn what_is_to_be_repaired_says_what() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let missing = Refusal::new(Code::NotFound, "no table").of(StorageErrorCode::TableNotFound, "t");
    let key = Refusal::new(Code::FailedPrecondition, "no key").of(StorageErrorCode::KmsPermissionDenied, "k");
    for (refusal, parts) in [
        (Refusal::new(Code::PermissionDenied, "no right"), ["roles/bigquery.dataEditor", "no right"]),
        (missing, ["there is no table", "no table"]),
        (key, ["encryption key", "no key"]),
    ] {
        for fault in [Fault::Answer(refusal.clone()), Fault::Before(Ending::Error(refusal))] {
            fake(&place).when(Call::Append).once(fault);
            let error = text(target.append(0, &["a"]).await);
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
    assert_eq!(target.append(0, &["a"]).await, Ok(Appended::Written));
}

#[tokio::test]
async fn a_refused_request_is_fatal() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    for fault in [Fault::status(Code::InvalidArgument), Fault::answer(Code::InvalidArgument)] {
        fake(&place).when(Call::Append).once(fault);
        let fatal = target.append(0, &["a"]).await;
        assert!(matches!(&fatal, Err(AppendError::Fatal(why)) if why.contains("InvalidArgument")), "{fatal:?}");
    }
}

#[tokio::test]
async fn a_stream_that_was_closed_or_forgotten_is_gone() {
    let place = Place::fake();
    let mut target = Target::new(&place).await;
    target.append(0, &["a"]).await.unwrap();
    // A worker that took over.
    fake(&place).someone_finalizes(&target.stream);
    assert_eq!(target.append(1, &["b"]).await, Err(AppendError::StreamGone(target.stream.clone())));
    target.stream = target.warehouse.create_stream("s", &target.layout.table).await.unwrap();
    target.append(0, &["b"]).await.unwrap();
    fake(&place).expire_streams(&target.table);
    assert_eq!(target.append(1, &["c"]).await, Err(AppendError::StreamGone(target.stream.clone())));
    for code in [Code::FailedPrecondition, Code::NotFound] {
        fake(&place).when(Call::Append).once(Fault::answer(code));
        assert_eq!(target.append(1, &["c"]).await, Err(AppendError::StreamGone(target.stream.clone())));
    }
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", ["a", "b"]));
}

/// A stream of a table that was made just now is not known everywhere at once.
#[tokio::test]
async fn a_stream_that_is_not_found_and_yet_there_is_waited_for() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    fake(&place).when(Call::Append).once(Fault::status(Code::NotFound));
    assert!(text(target.append(0, &["a"]).await).contains("not there yet"));
    fake(&place).when(Call::Append).once(Fault::status(Code::NotFound));
    fake(&place).when(Call::Get).once(Fault::status(Code::Unavailable));
    assert!(text(target.append(0, &["a"]).await).contains("cannot look at stream"));
    assert_eq!(target.append(0, &["a"]).await, Ok(Appended::Written));
}

/// That it is there already may be said by the end of the call: what is behind goes to a new one.
#[tokio::test]
async fn an_already_there_that_ends_the_call_counts_for_its_request_alone() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let ids = ids(2_000);
    let entry = large(&target, &ids);
    let there = || Fault::After(Ending::Error(Refusal::new(Code::AlreadyExists, "it is there")));
    fake(&place).when(Call::Append).times(2, there());
    assert_eq!(append(&target, &entry).await, Ok(Appended::Written));
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", &ids));
    fake(&place).when(Call::Append).times(3, Fault::Before(Ending::Error(Refusal::new(Code::AlreadyExists, "yes"))));
    assert_eq!(append(&target, &entry).await, Ok(Appended::AlreadyThere));
}

#[tokio::test]
async fn rows_that_another_writer_put_there_are_not_taken_for_ours() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    target.append(0, &["a"]).await.unwrap();
    // Another writer's rows before ours: ours would be at an offset that is taken.
    fake(&place).someone_writes(&target.stream, 1);
    assert_eq!(target.append(1, &["b"]).await, Ok(Appended::AlreadyThere), "only the offset can tell");
    let gap = target.append(3, &["d"]).await;
    assert_eq!(gap, Err(AppendError::OutOfRange { offset: 3, end: Some(2) }));
}

#[tokio::test]
async fn each_refused_row_of_a_request_is_named_by_its_place_in_the_entry() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let refused = Fault::Rows(Arc::new(|row| row["id"].as_str()?.strip_prefix("bad").map(|_| "it is bad".to_owned())));
    fake(&place).when(Call::Append).once(refused);
    let rows = match target.append(0, &["a", "bad1", "b", "bad2"]).await {
        Err(AppendError::Rows(rows)) => rows,
        other => panic!("{other:?}"),
    };
    assert_eq!(rows, [(1, "it is bad".to_owned()), (3, "it is bad".to_owned())]);
    assert_eq!(target.append(0, &["a", "b"]).await, Ok(Appended::Written), "its offset is free again");
}

/// Rows that are refused in a later request: what is left of the entry is sent again, whose first requests are written.
#[tokio::test]
async fn rows_refused_behind_written_requests_cost_no_other_row() {
    // The sizes of the rows; a request is full at 900 kB. In the first the refused row begins the second request, and the row
    // behind it would still fit into the first.
    for sizes in [&[400_000, 510_000, 800_000, 10][..], &[400_000, 510_000, 800_000, 200_000, 10]] {
        let place = Place::fake();
        let target = Target::new(&place).await;
        let id = |index: usize| format!("{index}{}", "x".repeat(sizes[index]));
        let ids: Vec<String> = (0..sizes.len()).map(id).collect();
        let entry = large(&target, &ids);
        let third = ids[2].clone();
        let refused = Fault::Rows(Arc::new(move |row| (row["id"] == third).then(|| "no".to_owned())));
        let rule = fake(&place).when(Call::Append).always(refused);
        assert_eq!(append(&target, &entry).await, Err(AppendError::Rows(vec![(2, "no".into())])));
        let rows = Arc::new(entry.rows.without(&[2]));
        assert_eq!(append(&target, &Entry { rows, ..entry }).await, Ok(Appended::Written));
        fake(&place).lift(rule);
        let kept = ids.iter().enumerate().filter(|(index, _)| *index != 2).map(|(_, id)| id);
        fake(&place).content(|content| content.expect_each_once(&target.table, "id", kept));
    }
}

#[tokio::test]
async fn a_dropped_column_is_waited_for_and_told_of() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let mut changes = target.warehouse.schema_changes();
    target.append(0, &["a"]).await.unwrap();
    assert!(!changes.has_changed().unwrap());
    fake(&place).drop_column(&target.table, "number", true);
    let error = text(target.append(1, &["b"]).await);
    assert!(error.contains(&target.layout.table) && error.contains("lacks a column"), "{error}");
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    fake(&place).add_column(&target.table, "number INT64", true);
    assert_eq!(target.append(1, &["b"]).await, Ok(Appended::Written));
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", ["a", "b"]));
}

#[tokio::test]
async fn an_added_column_is_told_of_once_and_written_when_it_is_known() {
    let place = Place::fake();
    let mut target = Target::new(&place).await;
    let mut changes = target.warehouse.schema_changes();
    target.append(0, &["a"]).await.unwrap();
    fake(&place).add_column(&target.table, "extra STRING", true);
    for (offset, id) in [(1, "b"), (2, "c")] {
        target.append(offset, &[id]).await.unwrap();
        assert_eq!(changes.has_changed().unwrap(), offset == 1);
        changes.mark_unchanged();
    }
    target.layout = layout(&place, target.warehouse.as_ref(), &target.table).await;
    assert_eq!(target.append(3, &["d"]).await, Ok(Appended::Written));
    // REST knows of another at once, the Storage Write interface only after minutes.
    fake(&place).add_column(&target.table, "more STRING", false);
    target.layout = layout(&place, target.warehouse.as_ref(), &target.table).await;
    assert!(text(target.append(4, &["e"]).await).contains("some minutes"));
    fake(&place).catch_up(&target.table);
    assert_eq!(target.append(4, &["e"]).await, Ok(Appended::Written));
    assert_eq!(place.values(&target.table, "extra", "id"), ["null", "null", "null", "more", "more"]);
    assert_eq!(place.values(&target.table, "more", "id"), ["null", "null", "null", "null", "more"]);
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

/// A null of ours stays null where the column has a default. A column that rows do not have gets its default: the fake refuses
/// a NOT NULL one unless that is asked for.
#[tokio::test]
async fn a_default_fills_only_what_rows_do_not_have() {
    let place = Place::fake();
    let table = "dataset.defaults";
    fake(&place).create_table(&format!(
        "CREATE TABLE {table} (id STRING NOT NULL, number INT64 DEFAULT 5, other STRING NOT NULL DEFAULT 'filled')"
    ));
    let mut target = Target::over(&place, place.open().await, table.to_owned(), "s").await;
    let columns = target.warehouse.columns(table).await.unwrap().unwrap();
    let defaults: Vec<bool> = columns.iter().map(|column| column.has_default).collect();
    assert_eq!(defaults, [false, true, true]);
    let mut narrow = (*target.layout).clone();
    narrow.columns.truncate(2);
    let preflight::warehouse::Encoding::Proto(kinds) = &mut narrow.encoding else { panic!("it is BigQuery") };
    kinds.truncate(2);
    target.layout = Arc::new(narrow);
    let mut rows = RowSet::default();
    for (event, number) in [(0, ValueRef::Null), (1, ValueRef::Int64(7))] {
        let id = if event == 0 { "a" } else { "b" };
        rows.push(event, usize::MAX, |bytes| target.layout.encode(bytes, [ValueRef::Text(id), number])).unwrap();
    }
    let entry = Entry { rows: Arc::new(rows), ..target.entry(0, &[]) };
    assert_eq!(append(&target, &entry).await, Ok(Appended::Written));
    assert_eq!(place.values(table, "number", "id"), ["null", "7"]);
    assert_eq!(place.values(table, "id", "id"), ["a", "b"]);
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
