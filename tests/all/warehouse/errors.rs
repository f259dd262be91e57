//! What the errors of an append mean, on the strict fake.

use super::fakes::{fake, text};
use super::place::{Place, Target};
use preflight::warehouse::{AppendError, Appended};
use preflight_tests::bigquery::fake::api::storage_error::StorageErrorCode;
use preflight_tests::bigquery::fake::{Call, Ending, Fault, Refusal};
use tonic::Code;

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
