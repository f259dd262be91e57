//! What the component says of itself: every column type, all nullable but one.

use crate::bindings::preflight::rules::types::{Column, ColumnType, Manifest};

pub(crate) fn manifest() -> Manifest {
    let column = |name: &str, kind, nullable| Column { name: name.to_owned(), kind, nullable };
    Manifest {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        event_versions: vec!["1".to_owned(), "2".to_owned()],
        attributes: vec!["source".to_owned(), "event_version".to_owned()],
        inputs: Vec::new(),
        columns: vec![
            column("n", ColumnType::Int64, false),
            column("t", ColumnType::Text, true),
            column("amount", ColumnType::Numeric, true),
            column("at", ColumnType::Timestamp, true),
            column("f", ColumnType::Float64, true),
            column("d", ColumnType::Date, true),
            column("b", ColumnType::Bytes, true),
            column("j", ColumnType::Json, true),
        ],
        event_time: Some("at".to_owned()),
        tables: Vec::new(),
    }
}
