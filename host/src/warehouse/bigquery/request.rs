//! An entry's rows as append requests below the size that BigQuery takes.
//!
//! Where a request ends depends on its own rows alone, not on what comes after them. An entry whose later rows were refused
//! is sent again without those, and the requests before them, which are written, must come out as they were: BigQuery
//! compares the offset of a repeated request, not its rows.

use super::super::{Entry, Layout, RowSet};
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::append_rows_request::{
    MissingValueInterpretation, ProtoData, Rows,
};
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::{AppendRowsRequest, ProtoRows, ProtoSchema};
use prost::encoding::encoded_len_varint;
use prost_types::DescriptorProto;
use std::collections::HashMap;
use std::ops::Range;

/// Rows are added to a request until it has this many bytes. Part of what a ledger relies on: changed, the rows of an
/// undone entry might be taken for written where they are not.
const FULL: usize = 900_000;

/// A row of at most this many bytes is written: a request has one of more than 900 kB at most, so it stays below 8 MB.
pub const MAX_ROW: usize = 7_000_000;

/// Splits rows into requests.
pub(super) fn split(rows: &RowSet) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (index, row) in rows.iter().enumerate() {
        // Key and length before each.
        size += 1 + encoded_len_varint(row.len() as u64) + row.len();
        if size >= FULL {
            parts.push(start..index + 1);
            (start, size) = (index + 1, 0);
        }
    }
    if start < rows.len() {
        parts.push(start..rows.len());
    }
    parts
}

/// The request for some rows of an entry. The first of a connection carries the schema.
pub(super) fn request(
    entry: &Entry,
    stream: &str,
    rows: Range<usize>,
    schema: Option<DescriptorProto>,
) -> AppendRowsRequest {
    let offset = offset(entry, &rows).map(|offset| i64::try_from(offset).expect("no stream has 2^63 rows"));
    let serialized = rows.map(|index| entry.rows.row(index).to_vec()).collect();
    append(stream, offset, &entry.layout, serialized, schema)
}

/// Where rows of an entry stand in their stream. Rows that are upserted stand nowhere.
pub(super) fn offset(entry: &Entry, rows: &Range<usize>) -> Option<u64> {
    entry.layout.upsert.is_none().then(|| entry.first_offset + rows.start as u64)
}

/// A request. Without an offset the rows go to the end of a stream that has none.
pub(super) fn append(
    stream: &str,
    offset: Option<i64>,
    layout: &Layout,
    rows: Vec<Vec<u8>>,
    schema: Option<DescriptorProto>,
) -> AppendRowsRequest {
    AppendRowsRequest {
        write_stream: stream.to_owned(),
        offset,
        trace_id: schema.as_ref().map(|_| format!("preflight:{}", env!("CARGO_PKG_VERSION"))).unwrap_or_default(),
        missing_value_interpretations: missing(layout),
        // A column that rows do not have is filled by the table.
        default_missing_value_interpretation: MissingValueInterpretation::DefaultValue.into(),
        rows: Some(Rows::ProtoRows(ProtoData {
            writer_schema: schema.map(|descriptor| ProtoSchema { proto_descriptor: Some(descriptor) }),
            rows: Some(ProtoRows { serialized_rows: rows }),
        })),
    }
}

/// A null of ours is a null, also where the column has a default.
fn missing(layout: &Layout) -> HashMap<String, i32> {
    layout.columns.iter().map(|column| (column.clone(), MissingValueInterpretation::NullValue.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::{Encoding, Tier};
    use super::*;
    use crate::row::ColumnType;
    use prost::Message;
    use std::sync::Arc;

    fn rows(sizes: &[usize]) -> RowSet {
        let mut rows = RowSet::default();
        for (index, size) in sizes.iter().enumerate() {
            let event = u32::try_from(index).unwrap();
            rows.push(event, usize::MAX, |bytes| bytes.resize(bytes.len() + size, b'x')).unwrap();
        }
        rows
    }

    fn split_of(sizes: &[usize]) -> Vec<Range<usize>> {
        split(&rows(sizes))
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "the requests of an entry are ranges")]
    fn a_request_ends_with_the_row_that_fills_it() {
        assert!(split_of(&[]).is_empty());
        assert_eq!(split_of(&[0, 1]), [0..2]);
        // Four bytes of each row are its key and length.
        assert_eq!(split_of(&[449_996, 449_996, 1]), [0..2, 2..3]);
        assert_eq!(split_of(&[449_996, 449_995, 1]), [0..3]);
        assert_eq!(split_of(&[899_996]), [0..1]);
        assert_eq!(split_of(&[MAX_ROW, MAX_ROW]), [0..1, 1..2]);
        assert_eq!(split_of(&[899_995, MAX_ROW, 1]), [0..2, 2..3]);
    }

    /// Pinned: a ledger that holds undone entries of an older version is sent by this one.
    #[test]
    fn the_boundaries_do_not_change() {
        let sizes: Vec<usize> = (0..4_000).map(|index| index * 7_919 % 1_500).collect();
        assert_eq!(split_of(&sizes), [0..1198, 1198..2395, 2395..3593, 3593..4000]);
    }

    /// Once lost a row: the first request was extended by a row behind the refused one, answered as already there, and the
    /// row was never written.
    #[test]
    fn what_is_taken_out_behind_a_request_does_not_move_its_end() {
        let sizes = [400_000, 500_000, 300_000, 10, 300_000, 400_000, 5];
        let all = rows(&sizes);
        let parts = split(&all);
        assert_eq!(parts[0], 0..2);
        for refused in 2..sizes.len() {
            let refused: Vec<usize> = (2..=refused).collect();
            let kept = all.without(&refused);
            assert_eq!(split(&kept)[0], 0..2, "without {refused:?}");
        }
    }

    #[test]
    fn the_largest_request_stays_below_8_mb() {
        let layout = Layout {
            table: "p.d.t".into(),
            columns: (0..300).map(|index| format!("column_with_a_long_name_{index}")).collect(),
            encoding: Encoding::Proto(vec![ColumnType::Text; 300]),
            upsert: None,
        };
        let schema = super::super::descriptor::descriptor(&layout).unwrap();
        let rows = Arc::new(rows(&[899_995, MAX_ROW]));
        let stream = "projects/p/datasets/d/tables/t/streams/s".to_owned();
        let entry = Entry { tier: Tier::Silver, stream, first_offset: 7, rows, layout: Arc::new(layout) };
        let request = request(&entry, &entry.stream, 0..2, Some(schema));
        assert_eq!(request.offset, Some(7));
        assert!(request.encoded_len() < 8_000_000, "{}", request.encoded_len());
    }

    #[test]
    fn a_null_is_a_null_and_what_rows_do_not_have_the_table_fills() {
        let kinds = Encoding::Proto(vec![ColumnType::Text]);
        let layout = Layout { table: "p.d.t".into(), columns: vec!["id".into()], encoding: kinds, upsert: None };
        let request = append("s", None, &layout, vec![], None);
        assert_eq!(request.default_missing_value_interpretation(), MissingValueInterpretation::DefaultValue);
        let null = i32::from(MissingValueInterpretation::NullValue);
        assert_eq!(request.missing_value_interpretations, HashMap::from([("id".to_owned(), null)]));
        assert_eq!((request.offset, request.trace_id.as_str()), (None, ""), "only the first request says who we are");
    }
}
