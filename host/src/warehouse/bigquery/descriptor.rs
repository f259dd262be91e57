//! The writer schema: a protocol buffer descriptor of the rows, made from their layout.
//!
//! Proto2, so that a field that is left out is a null and not a zero. No package, no nested types.

use super::super::{Encoding, Layout};
use crate::row::ColumnType;
use crate::rules::manifest::is_column_name;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};

/// The descriptor of rows of a layout.
pub(super) fn descriptor(layout: &Layout) -> Result<DescriptorProto, String> {
    let Encoding::Proto(kinds) = &layout.encoding else {
        return Err(format!("the rows for table {} are encoded for another warehouse", layout.table));
    };
    let fields = (1..).zip(&layout.columns).zip(kinds);
    let columns = fields.map(|((number, name), kind)| {
        // Columns that rows fill are called as rules and the host call theirs.
        if !is_column_name(name) {
            return Err(format!("column {name:?} of table {} cannot be written by its name", layout.table));
        }
        Ok(field(name, number, wire(*kind)))
    });
    let mut fields = columns.collect::<Result<Vec<_>, _>>()?;
    if layout.upsert.is_some() {
        for name in CHANGE {
            let number = fields.len() + 1;
            let number = i32::try_from(number).expect("a table has at most 10,000 columns");
            fields.push(field(name, number, Type::String));
        }
    }
    Ok(DescriptorProto { name: Some("Row".to_owned()), field: fields, ..Default::default() })
}

/// What a row that is upserted has behind its columns, as [`super::encode_change()`] writes it
/// (docs.cloud.google.com/bigquery/docs/change-data-capture).
const CHANGE: [&str; 2] = ["_CHANGE_TYPE", "_CHANGE_SEQUENCE_NUMBER"];

fn field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        ..FieldDescriptorProto::default()
    }
}

/// The type that [`super::encode()`] writes for a column of the table.
const fn wire(kind: ColumnType) -> Type {
    match kind {
        ColumnType::Boolean => Type::Bool,
        ColumnType::Int64 | ColumnType::Timestamp => Type::Int64,
        ColumnType::Float64 => Type::Double,
        ColumnType::Numeric | ColumnType::Text | ColumnType::Json => Type::String,
        ColumnType::Bytes => Type::Bytes,
        ColumnType::Date => Type::Int32,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Change, Upsert};
    use super::*;
    use crate::row::ValueRef;
    use prost::Message;

    fn layout(columns: &[(&str, ColumnType)]) -> Layout {
        let (names, kinds) = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).unzip();
        Layout { table: "p.d.t".into(), columns: names, encoding: Encoding::Proto(kinds), upsert: None }
    }

    #[test]
    fn fields_are_optional_and_numbered_as_the_columns_stand() {
        let kinds = ColumnType::ALL.map(|kind| (kind, kind.to_string().to_lowercase()));
        let columns: Vec<(&str, ColumnType)> = kinds.iter().map(|(kind, name)| (name.as_str(), *kind)).collect();
        let descriptor = descriptor(&layout(&columns)).unwrap();
        let fields: Vec<String> = descriptor
            .field
            .iter()
            .map(|field| {
                format!("{:?} {} {} = {}", field.label(), field.r#type().as_str_name(), field.name(), field.number())
            })
            .collect();
        assert_eq!(
            fields,
            [
                "Optional TYPE_BOOL bool = 1",
                "Optional TYPE_INT64 int64 = 2",
                "Optional TYPE_DOUBLE float64 = 3",
                "Optional TYPE_STRING numeric = 4",
                "Optional TYPE_STRING string = 5",
                "Optional TYPE_BYTES bytes = 6",
                "Optional TYPE_INT64 timestamp = 7",
                "Optional TYPE_INT32 date = 8",
                "Optional TYPE_STRING json = 9",
            ]
        );
    }

    #[derive(Clone, PartialEq, Message)]
    struct Decoded {
        #[prost(string, optional, tag = "1")]
        id: Option<String>,
        #[prost(string, optional, tag = "2")]
        amount: Option<String>,
        #[prost(int64, optional, tag = "3")]
        at: Option<i64>,
        #[prost(int32, optional, tag = "4")]
        day: Option<i32>,
    }

    /// What is encoded is what a reader of the descriptor finds, absent fields included.
    #[test]
    fn an_encoded_row_reads_back_by_its_descriptor() {
        use ColumnType::{Date, Numeric, Text, Timestamp};
        let layout = layout(&[("id", Text), ("amount", Numeric), ("at", Timestamp), ("day", Date)]);
        let mut bytes = Vec::new();
        layout.encode(&mut bytes, [ValueRef::Text(""), ValueRef::Int64(-5), ValueRef::Null, ValueRef::Date(-1)]);
        let decoded = Decoded::decode(bytes.as_slice()).unwrap();
        let expected = Decoded { id: Some(String::new()), amount: Some("-5".into()), at: None, day: Some(-1) };
        assert_eq!(decoded, expected);
    }

    #[derive(Clone, PartialEq, Message)]
    struct Changed {
        #[prost(string, optional, tag = "1")]
        id: Option<String>,
        #[prost(int64, optional, tag = "2")]
        epoch: Option<i64>,
        #[prost(string, optional, tag = "3")]
        change: Option<String>,
        #[prost(string, optional, tag = "4")]
        sequence: Option<String>,
    }

    #[test]
    fn a_row_that_is_upserted_says_what_it_does_behind_its_columns() {
        let upsert = Upsert { key: "id".into(), sequence: vec!["epoch".into()] };
        let layout =
            Layout { upsert: Some(upsert), ..layout(&[("id", ColumnType::Text), ("epoch", ColumnType::Int64)]) };
        let names: Vec<String> = descriptor(&layout).unwrap().field.iter().map(|f| f.name().to_owned()).collect();
        assert_eq!(names, ["id", "epoch", "_CHANGE_TYPE", "_CHANGE_SEQUENCE_NUMBER"]);
        for (change, text) in [(Change::Upsert, "UPSERT"), (Change::Delete, "DELETE")] {
            let mut bytes = Vec::new();
            layout.encode_change(&mut bytes, [ValueRef::Text("a"), ValueRef::Int64(26)], change);
            let (id, change) = (Some("a".to_owned()), Some(text.to_owned()));
            let sequence = Some("000000000000001A".to_owned());
            assert_eq!(Changed::decode(bytes.as_slice()).unwrap(), Changed { id, epoch: Some(26), change, sequence });
        }
    }

    #[test]
    fn a_name_that_is_no_identifier_is_refused() {
        let error = descriptor(&layout(&[("día de hoy", ColumnType::Text)])).unwrap_err();
        assert!(error.contains("día de hoy") && error.contains("p.d.t"), "{error}");
        let cells = Layout { encoding: Encoding::Cells, ..layout(&[]) };
        assert!(descriptor(&cells).unwrap_err().contains("another warehouse"));
    }
}
