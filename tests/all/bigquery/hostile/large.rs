//! Rows and batches near and above what one request takes.

use super::column;
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use preflight_tests::bookings;

/// What a request must stay below.
const MOST: usize = 8_000_000;

#[track_caller]
fn expect_small_requests(fake: &Fake) {
    for table in [BRONZE, SILVER, QUARANTINE] {
        let sizes =
            fake.content(|content| content.appends(table).iter().map(|append| append.bytes).collect::<Vec<_>>());
        assert!(sizes.iter().all(|size| *size < MOST), "{table}: {sizes:?}");
    }
}

/// An event of this size: good, or no JSON.
fn event(number: usize, size: usize, good: bool) -> String {
    let booking = bookings::from(number, 1);
    let padding = "x".repeat(size.saturating_sub(booking.len() + 12));
    let padded = booking.replace("\"JFK\"", &format!("\"JFK\", \"note\": \"{padding}\""));
    if good { padded } else { padded.replacen('{', "[", 1) }
}

#[test]
fn a_batch_above_the_limit_of_a_request_is_many_requests() {
    let fake = Fake::start();
    let input: String = (0..100).map(|number| event(number, 400_000, number % 3 != 0)).collect();
    fake.offvia(input).set("batch.max_events=100").set("batch.max_bytes=64 MiB").run().expect(0);
    expect_small_requests(&fake);
    let ids: Vec<String> = (1..=100).map(|line| format!("input.ndjson:{line}")).collect();
    fake.content(|content| {
        assert_eq!(column(&content, BRONZE, "message_id"), ids);
        let mut judged = column(&content, SILVER, "source_message_id");
        judged.extend(column(&content, QUARANTINE, "source_message_id"));
        judged.sort_by_key(|id| id.rsplit(':').next().unwrap().parse::<usize>().unwrap());
        assert_eq!(judged, ids);
        assert!(content.appends(BRONZE).len() > 30);
    });
}

/// Up to the 10 MB that a message may have, and above. In quarantine the payload stands twice, as text and as bytes.
#[test]
fn an_event_near_10_mb_is_in_one_place_with_what_fits_of_it() {
    let sizes = [1_000_000, 3_400_000, 3_600_000, 6_900_000, 7_100_000, 9_990_000, 10_400_000, 11_000_000];
    for good in [true, false] {
        let fake = Fake::start();
        let input: String = sizes.iter().enumerate().map(|(number, size)| event(number, *size, good)).collect();
        fake.offvia(input).set("batch.max_bytes=64 MiB").run().expect(0);
        expect_small_requests(&fake);
        let ids = (1..=sizes.len()).map(|line| format!("input.ndjson:{line}"));
        fake.content(|content| {
            content.expect_each_once(BRONZE, "message_id", ids.clone());
            let silver = content.places(SILVER, "source_message_id");
            let quarantine = content.rows(QUARANTINE);
            assert_eq!(silver.len() + quarantine.len(), sizes.len(), "good: {good}");
            for row in quarantine {
                let line: usize =
                    row["source_message_id"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
                assert!(!silver.contains_key(&format!("input.ndjson:{line}")));
                let reason = row["error_reason"].as_str().unwrap();
                if sizes[line - 1] > 3_500_000 {
                    assert!(reason.contains("bytes"), "{reason}");
                }
                if sizes[line - 1] > 7_000_000 {
                    assert!(reason.contains("sha256:"), "{reason}");
                }
            }
        });
    }
}

/// Bytes that are no text grow threefold as text.
#[test]
fn a_payload_that_is_no_text_is_kept_whole_where_its_bytes_fit() {
    let fake = Fake::start();
    let mut input = Vec::new();
    for size in [1_000_000, 3_000_000, 6_000_000, 9_000_000] {
        input.extend(std::iter::repeat_n(0xff_u8, size));
        input.push(b'\n');
    }
    fake.offvia(input).set("batch.max_bytes=64 MiB").run().expect(0);
    expect_small_requests(&fake);
    fake.content(|content| {
        content.expect_each_once(BRONZE, "message_id", (1..=4).map(|line| format!("input.ndjson:{line}")));
        let kept: Vec<usize> = content
            .rows(QUARANTINE)
            .iter()
            .map(|row| row["raw_bytes"].as_str().unwrap().trim_end_matches('=').len() * 3 / 4)
            .collect();
        assert_eq!(kept[..3], [1_000_000, 3_000_000, 6_000_000]);
        assert!(kept[3] < 1_000_000);
    });
}
