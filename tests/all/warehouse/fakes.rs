//! What the tests on the strict fake share.

use super::place::{Place, Target};
use preflight::warehouse::{AppendError, Appended, Entry};
use preflight_tests::bigquery::Fake;

pub fn fake(place: &Place) -> &Fake {
    let Place::Fake(fake) = place else { panic!("these faults are the fake's") };
    fake
}

/// Ids of a kilobyte.
pub fn long_ids(rows: usize) -> Vec<String> {
    (0..rows).map(|row| format!("{row:04}{}", "x".repeat(1_000))).collect()
}

/// An entry that takes several requests, if the ids are long.
pub fn large(target: &Target<'_>, ids: &[String]) -> Entry {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    target.entry(0, &ids)
}

pub async fn append(target: &Target<'_>, entry: &Entry) -> Result<Appended, AppendError> {
    target.append_all(vec![entry.clone()]).await.remove(0)
}

pub fn is_retryable(result: &Result<Appended, AppendError>) -> bool {
    matches!(result, Err(AppendError::Retryable(_)))
}

/// Why it may be tried again.
#[track_caller]
pub fn text(result: Result<Appended, AppendError>) -> String {
    match result {
        Err(AppendError::Retryable(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Sent again until it is there, as delivery does.
pub async fn deliver(target: &Target<'_>, entry: &Entry) -> Appended {
    for _ in 0..20 {
        match append(target, entry).await {
            Ok(appended) => return appended,
            Err(AppendError::Retryable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it is never written")
}
