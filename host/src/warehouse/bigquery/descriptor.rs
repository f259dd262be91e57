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
    let field = fields.map(|((number, name), kind)| {
        // Columns that rows fill are called as rules and the host call theirs.
        if !is_column_name(name) {
            return Err(format!("column {name:?} of table {} cannot be written by its name", layout.table));
        }
        Ok(FieldDescriptorProto {
            name: Some(name.clone()),
            number: Some(number),
            label: Some(Label::Optional.into()),
            r#type: Some(wire(*kind).into()),
            ..FieldDescriptorProto::default()
        })
    });
    Ok(DescriptorProto { name: Some("Row".to_owned()), field: field.collect::<Result<_, _>>()?, ..Default::default() })
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
    use super::*;
    use crate::row::ValueRef;
    use prost::Message;

    fn layout(columns: &[(&str, ColumnType)]) -> Layout {
        let (names, kinds) = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).unzip();
        Layout { table: "p.d.t".into(), columns: names, encoding: Encoding::Proto(kinds) }
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

    #[test]
    fn a_name_that_is_no_identifier_is_refused() {
        let error = descriptor(&layout(&[("día de hoy", ColumnType::Text)])).unwrap_err();
        assert!(error.contains("día de hoy") && error.contains("p.d.t"), "{error}");
        let cells = Layout { encoding: Encoding::Cells, ..layout(&[]) };
        assert!(descriptor(&cells).unwrap_err().contains("another warehouse"));
    }
}
