//! Live tables: what their columns hold.
//!
//! `tables.get` tells of them. What it leaves out of defaults and limits comes from the default stream's schema, which the
//! Storage Write interface gives. Of the two only the first is sure to be up to date.

use super::super::{Limit, TableColumn, WarehouseError};
use super::live::{Field, LiveTable};
use super::name::TableName;
use super::rest::Rest;
use super::storage::Storage;
use super::streams::{self, Asks};
use crate::row::ColumnType;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::table_field_schema::{Mode, Type};
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::{TableFieldSchema, TableSchema};

/// Digits of a NUMERIC of ours, before and after the point.
const DIGITS: (u64, u64) = (29, 9);

/// The columns of a table, or none if there is no such table.
pub(super) async fn columns(
    rest: &Rest,
    storage: &Storage,
    name: &TableName,
    asks: Asks,
) -> Result<Option<Vec<TableColumn>>, WarehouseError> {
    let Some(table) = rest.table(name).await? else { return Ok(None) };
    let fields = fields(name, &table)?;
    let known = streams::table_schema(storage, name, asks).await?.unwrap_or_default();
    let fields = with_limits(fields, &known);
    let column = |(field, live): (&TableFieldSchema, &Field)| column(field, live, table.is_key(&live.name));
    Ok(Some(fields.iter().zip(table.fields()).map(column).collect()))
}

/// The columns as REST has them, in the words of the other interface.
fn fields(name: &TableName, table: &LiveTable) -> Result<Vec<TableFieldSchema>, WarehouseError> {
    if let Some(kind) = table.kind.as_deref().filter(|kind| *kind != "TABLE") {
        let text = format!("{name} is a {kind}: rows can be written to tables only");
        return Err(WarehouseError { text, retryable: false });
    }
    Ok(table.fields().iter().map(field).collect())
}

/// Of a type that we do not know the type is not specified.
fn field(live: &Field) -> TableFieldSchema {
    let kind = match live.kind.as_str() {
        // REST has the names of the old SQL for these.
        "INTEGER" => Type::Int64,
        "FLOAT" | "FLOAT64" => Type::Double,
        "BOOLEAN" => Type::Bool,
        "RECORD" => Type::Struct,
        kind => Type::from_str_name(kind).unwrap_or(Type::Unspecified),
    };
    let mode = match live.mode.as_deref() {
        Some("REQUIRED") => Mode::Required,
        Some("REPEATED") => Mode::Repeated,
        _ => Mode::Nullable,
    };
    let (precision, scale) = live.digits();
    TableFieldSchema {
        name: live.name.clone(),
        r#type: kind.into(),
        mode: mode.into(),
        max_length: live.max_length(),
        precision,
        scale,
        default_value_expression: live.default_value_expression.clone().unwrap_or_default(),
        ..TableFieldSchema::default()
    }
}

/// Adds what the other interface alone tells.
fn with_limits(mut fields: Vec<TableFieldSchema>, known: &TableSchema) -> Vec<TableFieldSchema> {
    for field in &mut fields {
        let Some(known) = known.fields.iter().find(|known| known.name.eq_ignore_ascii_case(&field.name)) else {
            continue;
        };
        if (field.max_length, field.precision) == (0, 0) {
            field.max_length = known.max_length;
            (field.precision, field.scale) = (known.precision, known.scale);
        }
        if field.default_value_expression.is_empty() {
            field.default_value_expression.clone_from(&known.default_value_expression);
        }
    }
    fields
}

fn column(field: &TableFieldSchema, live: &Field, is_key: bool) -> TableColumn {
    TableColumn {
        name: field.name.clone(),
        declared: declared(field, &live.kind),
        holds: if field.mode() == Mode::Repeated { Vec::new() } else { holds(field) },
        limit: limit(field),
        nullable: field.mode() != Mode::Required,
        has_default: !field.default_value_expression.is_empty(),
        is_key,
    }
}

/// The type as SQL has it. One that we do not know is called as REST calls it.
fn declared(field: &TableFieldSchema, live: &str) -> String {
    let name = match field.r#type() {
        Type::Double => "FLOAT64",
        Type::Unspecified => live,
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

    fn live(kind: &str) -> Field {
        serde_json::from_value(serde_json::json!({ "name": "c", "type": kind })).unwrap()
    }

    fn told(field: &TableFieldSchema) -> TableColumn {
        column(field, &live(field.r#type().as_str_name()), false)
    }

    #[test]
    fn a_type_is_known_by_the_names_of_rest_and_of_sql_and_others_hold_nothing() {
        for (kind, declared, holds) in [
            ("INTEGER", "INT64", Some(ColumnType::Int64)),
            ("INT64", "INT64", Some(ColumnType::Int64)),
            ("FLOAT", "FLOAT64", Some(ColumnType::Float64)),
            ("FLOAT64", "FLOAT64", Some(ColumnType::Float64)),
            ("BOOLEAN", "BOOL", Some(ColumnType::Boolean)),
            ("RECORD", "STRUCT", None),
            ("RANGE", "RANGE", None),
            ("SOMETHING_NEW", "SOMETHING_NEW", None),
        ] {
            let live = live(kind);
            let column = column(&field(&live), &live, false);
            assert_eq!((column.declared.as_str(), column.holds.first().copied()), (declared, holds));
        }
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
            let column = told(&of(kind));
            assert_eq!((column.declared.as_str(), column.holds), (declared, holds));
            assert!(column.nullable && !column.has_default);
        }
    }

    #[test]
    fn an_array_holds_nothing_and_a_required_column_is_not_nullable() {
        let array = told(&TableFieldSchema { mode: Mode::Repeated.into(), ..of(Type::String) });
        assert_eq!((array.declared.as_str(), array.holds.len(), array.nullable), ("ARRAY<STRING>", 0, true));
        let default_value_expression = "CURRENT_TIMESTAMP()".to_owned();
        let required = TableFieldSchema { mode: Mode::Required.into(), default_value_expression, ..of(Type::String) };
        assert_eq!((told(&required).nullable, told(&required).has_default), (false, true));
    }

    #[test]
    fn a_column_that_is_narrower_than_its_type_says_what_it_takes() {
        let limited = |kind, precision, scale, max_length| {
            let column = told(&TableFieldSchema { precision, scale, max_length, ..of(kind) });
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
    fn what_rest_tells_of_a_column_is_read() {
        let json = serde_json::json!({ "schema": { "fields": [
            { "name": "short", "type": "STRING", "maxLength": "5", "mode": "REQUIRED", "defaultValueExpression": "'x'" },
            { "name": "fare", "type": "NUMERIC", "precision": "10", "scale": 2 },
            { "name": "span", "type": "RANGE", "rangeElementType": { "type": "DATE" }, "policyTags": { "names": [] } },
        ] }, "tableConstraints": { "primaryKey": { "columns": ["Short"] } } });
        let table: LiveTable = serde_json::from_value(json).unwrap();
        let columns: Vec<_> =
            table.fields().iter().map(|live| column(&field(live), live, table.is_key(&live.name))).collect();
        let declared: Vec<&str> = columns.iter().map(|column| column.declared.as_str()).collect();
        assert_eq!(declared, ["STRING(5)", "NUMERIC(10, 2)", "RANGE"]);
        assert_eq!((columns[0].nullable, columns[0].has_default), (false, true));
        assert_eq!(columns.iter().map(|column| column.is_key).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(columns[1].limit, Some(Limit::Digits { before: 8, behind: 2 }));
    }

    #[test]
    fn limits_and_defaults_are_added_by_name() {
        let known = TableFieldSchema { name: "C".into(), max_length: 3, ..of(Type::String) };
        let fields = with_limits(vec![of(Type::String)], &TableSchema { fields: vec![known] });
        assert_eq!(declared(&fields[0], ""), "STRING(3)");
    }
}
