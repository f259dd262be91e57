//! What runs leave whose ledger is lost.

use super::{Expected, crash_at, published, staged};
use preflight::failpoint;
use preflight_tests::bookings;

#[test]
fn what_an_unknown_run_has_left_is_named_and_left_alone() {
    let input = bookings::lines(300);
    let mut pipeline = published(110, &input);
    crash_at(&mut pipeline, failpoint::ROWS_APPENDED, 4);
    let left = staged(&pipeline);
    assert_eq!(left.len(), 4);
    std::fs::remove_dir_all(pipeline.ledger()).unwrap();
    let ended = pipeline.run().expect(0);
    for name in &left {
        assert!(ended.stderr.contains(name.as_str()), "{name}: {}", ended.stderr);
    }
    Expected::of(&input).expect(&pipeline, "beside what is left");
    assert_eq!(staged(&pipeline), left);
    let database = rusqlite::Connection::open(pipeline.database()).unwrap();
    for name in left.iter().filter(|name| name.contains("__run_")) {
        database.execute_batch(&format!("DROP TABLE \"{name}\"")).unwrap();
    }
    let file = left.iter().find(|name| name.contains(".run_")).unwrap();
    std::fs::remove_file(pipeline.directory().join("rejected").join(file)).unwrap();
    assert!(!pipeline.run().expect(0).stderr.contains("left by runs"));
}
