//! Rejects in files, as they came.

use super::{pipeline, rejected, rejects, staged};
use preflight_tests::{Pipeline, bookings, tables};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A pipeline whose rejects go to files alone.
fn files_only(input: &str) -> Pipeline {
    let mut pipeline = pipeline(input);
    let file = fs::read_to_string(pipeline.file()).unwrap();
    let quarantine = file.find("[quarantine]").unwrap();
    fs::write(pipeline.file(), format!("{}[quarantine.files]\npath = \"rejected/bookings\"\n", &file[..quarantine]))
        .unwrap();
    pipeline.settings.retain(|setting| !setting.starts_with("quarantine."));
    pipeline
}

#[test]
fn rejects_are_kept_byte_for_byte_in_their_order() {
    let odd = b"\xff\xfe not UTF-8\n{\"cut\": \r\n\n\"a \"\"quoted\"\" line, with commas\"\n no newline at the end";
    let pipeline = files_only("");
    pipeline.write_input([bookings::good(3).as_bytes(), odd, b""].concat());
    let report = pipeline.run().expect(0).json();
    assert_eq!((report["quarantine"].as_u64(), report["silver"].as_u64()), (Some(5), Some(3)));
    let mut expected = odd.to_vec();
    expected.push(b'\n');
    assert_eq!(fs::read(rejects(&pipeline)).unwrap(), expected);
    let tables = tables::query(&pipeline.database(), "SELECT 1 FROM sqlite_schema WHERE name = 'poisoned_events'");
    assert!(tables.is_empty(), "no table is made");
}

#[test]
fn a_row_that_silver_refuses_after_all_is_a_reject_in_the_file_and_in_the_counts() {
    let input = bookings::lines(120);
    let pipeline = files_only(&input);
    pipeline.run().expect(0);
    let database = rusqlite::Connection::open(pipeline.database()).unwrap();
    database
        .execute_batch("CREATE UNIQUE INDEX one ON fact_bookings (passenger_id) WHERE passenger_id = 'PAX-7'")
        .unwrap();
    let seventh = input.lines().nth(7).unwrap();
    // A second booking of that passenger: by itself it is good.
    pipeline.write_input(format!("{input}{}\n", seventh.replace("BK-7", "BK-999")));
    let report = pipeline.run().expect(0).json();
    let bad = rejected(&input).lines().count() as u64;
    assert_eq!(report["quarantine"].as_u64(), Some(bad + 1));
    assert_eq!(report["silver"].as_u64(), Some(120 - bad));
    let text = fs::read_to_string(rejects(&pipeline)).unwrap();
    assert_eq!(text, format!("{}{}\n", rejected(&input), seventh.replace("BK-7", "BK-999")));
}

/// Publishing would have put the rejects in the place of the input, and removed its other shards.
#[test]
fn rejects_never_replace_what_is_read() {
    let input = bookings::good(2);
    let pipeline = files_only("").set("source.file.path=rejected/bookings-*.csv");
    let directory = pipeline.directory().join("rejected");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("bookings-00001-of-00003.csv"), &input).unwrap();
    let ended = pipeline.run().expect(2);
    let what = "quarantine.files.path";
    assert!(ended.stderr.contains(what) && ended.stderr.contains("00001-of-00003.csv is read"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(directory.join("bookings-00001-of-00003.csv")).unwrap(), input);
    // Beside each other they may lie.
    fs::rename(directory.join("bookings-00001-of-00003.csv"), directory.join("bookings-1.csv")).unwrap();
    pipeline.run().expect(0);
    let ended = pipeline.run().expect(2);
    assert!(
        ended.stderr.contains("00000-of-00001.csv is read"),
        "a pattern that has them is refused: {}",
        ended.stderr
    );
}

#[test]
fn shards_of_an_earlier_output_go() {
    let pipeline = files_only("bad\n");
    let directory = pipeline.directory().join("rejected");
    fs::create_dir(&directory).unwrap();
    for name in ["bookings-00000-of-00002.csv", "bookings-00001-of-00002.csv"] {
        fs::write(directory.join(name), "old").unwrap();
    }
    fs::write(directory.join("bookings.csv"), "not ours").unwrap();
    pipeline.run().expect(0);
    let mut names: Vec<String> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["bookings-00000-of-00001.csv", "bookings.csv"]);
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_read() {
    let pipeline = files_only(&bookings::lines(60));
    fs::write(pipeline.directory().join("rejected"), "no directory").unwrap();
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains("bookings-00000-of-00001.csv"), "{}", ended.stderr);
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 0);
    fs::remove_file(pipeline.directory().join("rejected")).unwrap();
    pipeline.run().expect(0);
    assert_eq!(fs::read_to_string(rejects(&pipeline)).unwrap(), rejected(&bookings::lines(60)));
    assert_eq!(staged(&pipeline), [] as [&str; 0]);
    let mode = fs::metadata(rejects(&pipeline)).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
}

#[test]
fn what_is_in_files_only_is_not_listed_or_replayed() {
    let pipeline = files_only("bad\n");
    pipeline.run().expect(0);
    for (command, arguments) in [("list", &[][..]), ("replay", &["--all"])] {
        let ended = pipeline.quarantine(command, arguments).expect(2);
        assert!(ended.stderr.contains("quarantine.table"), "{}", ended.stderr);
    }
}
