//! Between the SDK's types and those of the contract's bindings.

use crate::bindings::validator::preflight::rules::{lookup, types};
use crate::event::Event;
use crate::lookup::Lookup;
use crate::manifest::Manifest;
use crate::panic;
use crate::row::Row;
use crate::value::{Column, ColumnType, Value};
use crate::verdict::{NotAccepted, Verdict};

/// Look-ups in the host's tables.
#[derive(Clone, Copy, Debug)]
pub struct HostLookup;

impl Lookup for HostLookup {
    fn get(&self, table: &str, key: Value) -> Option<Vec<Value>> {
        let row = lookup::get(table, &key.into())?;
        Some(row.into_iter().map(Value::from).collect())
    }
}

/// Judges an event that came from the host.
#[inline]
pub fn validate<R: Row>(event: types::Event, judge: impl FnOnce(&Event) -> Verdict<R>) -> types::Verdict {
    panic::install_hook();
    let event = Event::from_parts(event.payload, event.attributes, event.message_id, event.publish_time);
    verdict(judge(&event))
}

/// Enriches a row that came from the host.
///
/// # Panics
///
/// If the values are not of the columns that the manifest asks for, which the host rules out.
pub fn enrich<I: Row, R: Row>(inputs: types::Row, enrich: impl FnOnce(I, &dyn Lookup) -> Verdict<R>) -> types::Verdict {
    panic::install_hook();
    let input =
        I::from_values(inputs.into_iter().map(Value::from).collect()).expect("the inputs are those of the manifest");
    verdict(enrich(input, &HostLookup))
}

#[inline]
fn verdict<R: Row>(verdict: Verdict<R>) -> types::Verdict {
    match verdict.and_then(|row| row.into_values().map_err(NotAccepted::from)) {
        Ok(values) => types::Verdict::Accept(values.into_iter().map(types::Value::from).collect()),
        Err(NotAccepted::Reject(rejection)) => {
            types::Verdict::Reject(types::Rejection { stage: rejection.stage.into_owned(), reason: rejection.reason })
        }
        Err(NotAccepted::Ignore(why)) => types::Verdict::Ignore(why),
    }
}

/// A manifest for the host.
pub fn describe(manifest: &Manifest) -> types::Manifest {
    panic::install_hook();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    types::Manifest {
        name: manifest.name.to_owned(),
        version: manifest.version.to_owned(),
        event_versions: texts(manifest.event_versions),
        attributes: texts(manifest.attributes),
        inputs: columns(manifest.inputs),
        columns: columns(manifest.columns),
        event_time: manifest.event_time.map(str::to_owned),
        tables: manifest
            .tables
            .iter()
            .map(|table| types::Table {
                name: table.name.to_owned(),
                key: table.key.into(),
                columns: columns(table.columns),
            })
            .collect(),
    }
}

fn columns(columns: &[Column]) -> Vec<types::Column> {
    columns
        .iter()
        .map(|column| types::Column {
            name: column.name.to_owned(),
            kind: column.kind.into(),
            nullable: column.nullable,
        })
        .collect()
}

impl From<ColumnType> for types::ColumnType {
    fn from(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Boolean => Self::Boolean,
            ColumnType::Int64 => Self::Int64,
            ColumnType::Float64 => Self::Float64,
            ColumnType::Numeric => Self::Numeric,
            ColumnType::Text => Self::Text,
            ColumnType::Bytes => Self::Bytes,
            ColumnType::Timestamp => Self::Timestamp,
            ColumnType::Date => Self::Date,
            ColumnType::Json => Self::Json,
        }
    }
}

macro_rules! value_conversions {
    ($($case:ident),+) => {
        impl From<Value> for types::Value {
            #[inline]
            fn from(value: Value) -> Self {
                match value {
                    Value::Null => Self::Null,
                    $(Value::$case(value) => Self::$case(value),)+
                }
            }
        }

        impl From<types::Value> for Value {
            #[inline]
            fn from(value: types::Value) -> Self {
                match value {
                    types::Value::Null => Self::Null,
                    $(types::Value::$case(value) => Self::$case(value),)+
                }
            }
        }
    };
}

value_conversions!(Boolean, Int64, Float64, Numeric, Text, Bytes, Timestamp, Date, Json);
