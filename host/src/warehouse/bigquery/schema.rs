//! Live tables: what their columns hold.
//!
//! Names, types and modes are those of `tables.get`. Defaults and limits the REST client does not know: they come from the
//! default stream's schema, which the Storage Write interface gives. Of the two only the first is sure to be up to date.

use super::super::{Limit, TableColumn, WarehouseError};
use super::name::TableName;
use super::rest::{Failure, Rest};
use super::storage::Storage;
use super::streams;
use crate::row::ColumnType;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::table_field_schema::{Mode, Type};
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::{TableFieldSchema, TableSchema};
use gcp_bigquery_client::model::field_type::FieldType;
use gcp_bigquery_client::model::table::Table;
use gcp_bigquery_client::model::table_field_schema::TableFieldSchema as RestField;

/// Digits of a NUMERIC of ours, before and after the point.
const DIGITS: (u64, u64) = (29, 9);

/// The columns of a table, or none if there is no such table.
pub(super) async fn columns(
    rest: &Rest,
    storage: &Storage,
    name: &TableName,
) -> Result<Option<Vec<TableColumn>>, WarehouseError> {
    let fields = match rest.table(name).await {
        Ok(None) => return Ok(None),
        Ok(Some(table)) => Some(fields(name, table)?),
        // A column of a type that the client does not know. The other interface says what it is.
        Err(Failure { unreadable: true, .. }) => None,
        Err(failure) => return Err(failure.into()),
    };
    let known = streams::table_schema(storage, name).await?;
    let fields = match (fields, known) {
        (Some(fields), known) => with_limits(fields, &known.unwrap_or_default()),
        (None, Some(known)) => known.fields,
        (None, None) => {
            let text = format!("table {name} has a column of a type that this version does not know");
            return Err(WarehouseError { text, retryable: false });
        }
    };
    Ok(Some(fields.iter().map(column).collect()))
}

/// The columns as REST has them, in the words of the other interface.
fn fields(name: &TableName, table: Table) -> Result<Vec<TableFieldSchema>, WarehouseError> {
    if let Some(kind) = table.r#type.as_deref().filter(|kind| *kind != "TABLE") {
        let text = format!("{name} is a {kind}: rows can be written to tables only");
        return Err(WarehouseError { text, retryable: false });
    }
    Ok(table.schema.fields.unwrap_or_default().into_iter().map(field).collect())
}

fn field(rest: RestField) -> TableFieldSchema {
    let kind = match rest.r#type {
        FieldType::String => Type::String,
        FieldType::Bytes => Type::Bytes,
        FieldType::Integer | FieldType::Int64 => Type::Int64,
        FieldType::Float | FieldType::Float64 => Type::Double,
        FieldType::Numeric => Type::Numeric,
        FieldType::Bignumeric => Type::Bignumeric,
        FieldType::Boolean | FieldType::Bool => Type::Bool,
        FieldType::Timestamp => Type::Timestamp,
        FieldType::Date => Type::Date,
        FieldType::Time => Type::Time,
        FieldType::Datetime => Type::Datetime,
        FieldType::Record | FieldType::Struct => Type::Struct,
        FieldType::Geography => Type::Geography,
        FieldType::Json => Type::Json,
        FieldType::Interval => Type::Interval,
    };
    let mode = match rest.mode.as_deref() {
        Some("REQUIRED") => Mode::Required,
        Some("REPEATED") => Mode::Repeated,
        _ => Mode::Nullable,
    };
    TableFieldSchema { name: rest.name, r#type: kind.into(), mode: mode.into(), ..TableFieldSchema::default() }
}

/// Adds what only the other interface knows.
fn with_limits(mut fields: Vec<TableFieldSchema>, known: &TableSchema) -> Vec<TableFieldSchema> {
    for field in &mut fields {
        let Some(known) = known.fields.iter().find(|known| known.name.eq_ignore_ascii_case(&field.name)) else {
            continue;
        };
        field.max_length = known.max_length;
        (field.precision, field.scale) = (known.precision, known.scale);
        field.default_value_expression.clone_from(&known.default_value_expression);
    }
    fields
}

fn column(field: &TableFieldSchema) -> TableColumn {
    TableColumn {
        name: field.name.clone(),
        declared: declared(field),
        holds: if field.mode() == Mode::Repeated { Vec::new() } else { holds(field) },
        limit: limit(field),
        nullable: field.mode() != Mode::Required,
        has_default: !field.default_value_expression.is_empty(),
    }
}

/// The type as SQL has it.
fn declared(field: &TableFieldSchema) -> String {
    let name = match field.r#type() {
        Type::Double => "FLOAT64",
        kind => kind.as_str_name(),
    };
    let limits = match (field.precision, field.scale, field.max_length) {
        (0, _, 0) => String::new(),
        (0, _, length) => format!("({length})"),
        (precision, 0, _) => format!("({precision})"),
        (precision, scale, _) => format!("({precision}, {scale})"),
    };
    if field.mode() == Mode::Repeated { format!("ARRAY<{name}{limits}>") } else { format!("{name}{limits}") }
}

/// The types of values that a column takes without loss, within its limit.
fn holds(field: &TableFieldSchema) -> Vec<ColumnType> {
    match field.r#type() {
        Type::String => vec![ColumnType::Text, ColumnType::Json],
        Type::Bytes => vec![ColumnType::Bytes],
        Type::Int64 => vec![ColumnType::Int64],
        Type::Double => vec![ColumnType::Float64],
        Type::Numeric | Type::Bignumeric => vec![ColumnType::Numeric, ColumnType::Int64],
        Type::Bool => vec![ColumnType::Boolean],
        Type::Timestamp => vec![ColumnType::Timestamp],
        Type::Date => vec![ColumnType::Date],
        Type::Json => vec![ColumnType::Json],
        _ => Vec::new(),
    }
}

/// What a column takes of those values: a longer text BigQuery refuses, a number it rounds.
fn limit(field: &TableFieldSchema) -> Option<Limit> {
    let positive = |limit: i64| u64::try_from(limit).ok().filter(|limit| *limit > 0);
    match field.r#type() {
        Type::String => positive(field.max_length).map(Limit::Characters),
        Type::Bytes => positive(field.max_length).map(Limit::Bytes),
        Type::Numeric | Type::Bignumeric => {
            let behind = u64::try_from(field.scale).unwrap_or(0);
            let before = positive(field.precision)?.saturating_sub(behind);
            (before < DIGITS.0 || behind < DIGITS.1).then_some(Limit::Digits { before, behind })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Type) -> TableFieldSchema {
        TableFieldSchema { name: "c".into(), r#type: kind.into(), ..TableFieldSchema::default() }
    }

    #[test]
    fn a_column_holds_its_own_type_first() {
        use ColumnType::{Boolean, Bytes, Date, Float64, Int64, Json, Numeric, Text, Timestamp};
        for (kind, declared, holds) in [
            (Type::String, "STRING", vec![Text, Json]),
            (Type::Bytes, "BYTES", vec![Bytes]),
            (Type::Int64, "INT64", vec![Int64]),
            (Type::Double, "FLOAT64", vec![Float64]),
            (Type::Numeric, "NUMERIC", vec![Numeric, Int64]),
            (Type::Bignumeric, "BIGNUMERIC", vec![Numeric, Int64]),
            (Type::Bool, "BOOL", vec![Boolean]),
            (Type::Timestamp, "TIMESTAMP", vec![Timestamp]),
            (Type::Date, "DATE", vec![Date]),
            (Type::Json, "JSON", vec![Json]),
            (Type::Struct, "STRUCT", vec![]),
            (Type::Datetime, "DATETIME", vec![]),
            (Type::Range, "RANGE", vec![]),
        ] {
            let column = column(&of(kind));
            assert_eq!((column.declared.as_str(), column.holds), (declared, holds));
            assert!(column.nullable && !column.has_default);
        }
    }

    #[test]
    fn an_array_holds_nothing_and_a_required_column_is_not_nullable() {
        let array = column(&TableFieldSchema { mode: Mode::Repeated.into(), ..of(Type::String) });
        assert_eq!((array.declared.as_str(), array.holds.len(), array.nullable), ("ARRAY<STRING>", 0, true));
        let default_value_expression = "CURRENT_TIMESTAMP()".to_owned();
        let required = TableFieldSchema { mode: Mode::Required.into(), default_value_expression, ..of(Type::String) };
        assert_eq!((column(&required).nullable, column(&required).has_default), (false, true));
    }

    #[test]
    fn a_column_that_is_narrower_than_its_type_says_what_it_takes() {
        let limited = |kind, precision, scale, max_length| {
            let column = column(&TableFieldSchema { precision, scale, max_length, ..of(kind) });
            (column.declared, column.limit)
        };
        let digits = |before, behind| Some(Limit::Digits { before, behind });
        assert_eq!(limited(Type::String, 0, 0, 5), ("STRING(5)".into(), Some(Limit::Characters(5))));
        assert_eq!(limited(Type::Bytes, 0, 0, 5), ("BYTES(5)".into(), Some(Limit::Bytes(5))));
        assert_eq!(limited(Type::Numeric, 10, 2, 0), ("NUMERIC(10, 2)".into(), digits(8, 2)));
        assert_eq!(limited(Type::Numeric, 10, 0, 0), ("NUMERIC(10)".into(), digits(10, 0)));
        assert_eq!(limited(Type::Bignumeric, 40, 10, 0), ("BIGNUMERIC(40, 10)".into(), None));
        assert_eq!(limited(Type::Bignumeric, 37, 9, 0), ("BIGNUMERIC(37, 9)".into(), digits(28, 9)));
        assert_eq!(limited(Type::String, 0, 0, 0), ("STRING".into(), None));
    }

    #[test]
    fn limits_and_defaults_are_added_by_name() {
        let known = TableFieldSchema { name: "C".into(), max_length: 3, ..of(Type::String) };
        let fields = with_limits(vec![of(Type::String)], &TableSchema { fields: vec![known] });
        assert_eq!(declared(&fields[0]), "STRING(3)");
    }
}
