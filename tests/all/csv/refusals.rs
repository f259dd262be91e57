//! What is refused before anything is read, and what ends a run.

use super::{HEADER, booking, pipeline, write};

#[test]
fn files_that_are_not_what_the_pipeline_says_are_refused() {
    let refused = |text: &[u8], sets: &[&str], what: &str| {
        let pipeline = sets.iter().fold(pipeline(text), |pipeline, set| pipeline.set(*set));
        for ended in [pipeline.check(), pipeline.run()] {
            let error = ended.expect(2).stderr;
            assert!(error.contains("source.file.path: ") && error.contains(what), "{what}: {error}");
        }
        assert!(!pipeline.database().exists());
    };
    refused(b"a,b\n", &["source.file.path=*.tsv"], "*.tsv");
    refused(b"a,b\n", &["source.file.path=in/[ab.csv"], "is not a pattern");
    refused(b"a,,c\n", &[], "bookings.csv: its header is wrong: column 2 has no name");
    refused(b"a,b,a\n1,2,3\n", &[], "column `a` stands twice");
    refused(b"a,\"b\n1,2\n", &[], "its header is wrong: a quote is opened");
    refused(b"a,b\xff\n1,2\n", &[], "not UTF-8 from byte 3");
    refused(b"\xff\xfea\x00\n\x00", &[], "byte order mark of UTF-16");
    refused(b"\xfe\xff\x00a\x00\n", &[], "byte order mark of UTF-16");
    let columns = "source.file.csv.columns=[\"a\", \"b\"]";
    refused(b"b,a\n1,2\n", &[columns], "its columns are not those of the pipeline file: `b` stands where `a` should");
    refused(b"a,c\n1,2\n", &[columns], "it lacks `b`, and it has `c` beside them");
    refused(
        format!("{},b\n", "a".repeat(3_000)).as_bytes(),
        &["limits.payload=2 kB"],
        "header is above limits.payload",
    );
}

/// A file may change between the look at its header and its turn: what its records would mean is not known then.
#[test]
fn a_header_that_differs_ends_the_run_where_it_could_not_be_looked_at_before() {
    let pipeline = pipeline(format!("{HEADER}\n{}\n", booking("1", "PAX-1"))).set("source.file.path=*.csv*");
    // Cut off in the header, it has none yet.
    write(&pipeline, "d.csv.gz", &super::gzip(b"a,b\n1,2\n")[..12]);
    let error = pipeline.run().expect(1).stderr;
    assert!(error.contains("d.csv.gz: the gzip archive is cut off"), "{error}");
    assert_eq!(super::silver(&pipeline), ["1"]);
}

#[test]
fn values_of_arrays_are_not_utf_16_either() {
    let pipeline = pipeline(b"\xff\xfe[\x00]\x00").set("source.file.format=json-array");
    let error = pipeline.run().expect(1).stderr;
    assert!(error.contains("bookings.csv: it begins with a byte order mark of UTF-16"), "{error}");
}
