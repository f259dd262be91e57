//! A rebuild that is killed at any point gives the right result when it is called again.

use super::{counts, execute, expect_per_minute, minutes, number, rebuilt};
use preflight::failpoint;
use preflight_tests::orders::{self, Orders, PER_MINUTE};

const MINUTE: i64 = 60_000_000;

/// Points that a rebuild passes, and how often it does: it has three commits.
const POINTS: [(&str, u32); 8] = [
    (failpoint::UNDONE_SENT, 1),
    (failpoint::STREAM_CREATED, 1),
    (failpoint::STREAM_RECORDED, 1),
    (failpoint::LEDGER_COMMITTED, 1),
    (failpoint::LEDGER_COMMITTED, 3),
    (failpoint::ROWS_APPENDED, 2),
    (failpoint::ROWS_APPENDED, 3),
    (failpoint::ENTRY_DONE, 1),
];

#[test]
fn killed_at_any_point_a_rebuild_ends_exact_when_it_is_called_again() {
    let orders = Orders { count: 30_000, skus: 100_000, within: 20 * MINUTE, shuffled: 2 * MINUTE };
    let mut pipeline = orders::pipeline(&[PER_MINUTE], orders.lines());
    pipeline.run().expect(0);
    for (turn, (point, pass)) in POINTS.into_iter().enumerate() {
        execute(&pipeline, &format!("DELETE FROM orders WHERE rowid % 50 = {turn}"));
        pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
        let ended = pipeline.rebuild("per_minute", &minutes(-60, 60), &[]);
        assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
        pipeline.environment.clear();
        let report = rebuilt(&pipeline, "per_minute", &minutes(-60, 60));
        assert!(counts(&report)[0] > 20_000, "there are three commits: {report}");
        expect_per_minute(&pipeline);
    }
    // A run finishes what a killed rebuild had promised.
    execute(&pipeline, "DELETE FROM orders WHERE rowid % 50 = 40");
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{}=1", failpoint::LEDGER_COMMITTED))];
    assert!(pipeline.rebuild("per_minute", &minutes(-60, 60), &[]).was_killed());
    pipeline.environment.clear();
    assert_eq!(pipeline.run().expect(0).json()["resumed_commits"], 1);
    rebuilt(&pipeline, "per_minute", &minutes(-60, 60));
    expect_per_minute(&pipeline);
    let twice = "SELECT count(*) AS n FROM (SELECT 1 FROM per_minute GROUP BY window_id, epoch, pane_index HAVING count(*) > 1)";
    assert_eq!(number(&pipeline, twice), 0);
}
