//! Golden cases: each folder of `tests/goldens` is an example, with the rows that it gives.
//!
//! `pipeline.toml` runs as it is (`preflight run tests/goldens/CASE/pipeline.toml`); `setup.sql`, where there is one, is
//! applied to the database first, and `refused.txt` has what a case is refused with. `UPDATE_GOLDENS=1` writes the expected
//! rows anew.

use preflight_tests::goldens::{self, Case};
use serde_json::json;

macro_rules! cases {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                Case::new(stringify!($name)).check();
            }
        )+

        #[test]
        fn every_folder_is_a_case() {
            let cases = [$(stringify!($name)),+].map(str::to_owned);
            assert_eq!(goldens::names(), cases.into());
        }
    };
}

cases! {
    a_table_that_refuses_rows
    broken_envelopes
    csv_blank_lines
    csv_byte_order_mark
    csv_crlf
    csv_empty_file
    csv_fields_missing_and_extra
    csv_files_of_a_pattern
    csv_gzip
    csv_header_only
    csv_headers_that_differ
    csv_invalid_utf8
    csv_last_line_without_newline
    csv_no_header
    csv_other_delimiter
    csv_quoted_fields
    csv_unterminated_quote
    csv_zstd
    envelopes
    json_array
    lines_as_they_are
    partition_range
    payload_too_large
    row_too_large
    the_seeds_three_events
    versions_by_attribute
    versions_by_field
    versions_nobody_serves
    without_bronze
    your_own_tables
}

#[test]
fn a_difference_names_row_and_column() {
    let row = |value: serde_json::Value| value.as_object().unwrap().clone();
    let expected = [row(json!({"id": "1", "fare": "1.5"})), row(json!({"id": "2"}))];
    let got = [row(json!({"id": "1", "fare": "1.50"}))];
    let text = goldens::difference("silver", &expected, &got);
    assert_eq!(
        text,
        "  silver, row 1: fare\n    expected \"1.5\"\n    got      \"1.50\"\n  silver, row 2: missing: {\"id\":\"2\"}\n"
    );
}
