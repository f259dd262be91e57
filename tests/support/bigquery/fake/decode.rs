//! Rows read back: decoded with the descriptor that the writer sent, and checked against the table.

use super::api::storage_error::StorageErrorCode;
use super::api::table_field_schema::{Mode, Type};
use super::change::{self, Change};
use super::refusal::Refusal;
use super::table::{Column, Table};
use super::value;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_types::field_descriptor_proto::{Label, Type as Wire};
use prost_types::{DescriptorProto, FieldDescriptorProto};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tonic::Code;

/// Reads rows of one descriptor.
#[derive(Debug)]
pub(super) struct Decoder {
    fields: BTreeMap<u32, Field>,
    /// Columns that every row must have, since nothing fills them.
    required: Vec<String>,
    /// Its days are the partitions.
    partition_by: Option<String>,
    /// The pseudocolumns of a change by their numbers; none where rows are appended.
    change: BTreeMap<u32, &'static str>,
    primary_key: Vec<String>,
}

#[derive(Debug)]
struct Field {
    column: Column,
    wire: Wire,
}

impl Decoder {
    /// Fits a descriptor to a table. `defaults` says of a column whether the table fills it where a row lacks it.
    pub(super) fn new(
        descriptor: &DescriptorProto,
        table: &Table,
        stream: &str,
        defaults: impl Fn(&str) -> bool,
    ) -> Result<Self, Refusal> {
        let path = super::table_of(stream);
        let invalid =
            |why: String| Refusal::new(Code::InvalidArgument, format!("Invalid proto schema: {why} Entity: {path}"));
        let mut fields = BTreeMap::new();
        let mut extra = Vec::new();
        let changes = change::wanted(descriptor, table, stream)?;
        let mut change = BTreeMap::new();
        for field in &descriptor.field {
            if let Some(name) =
                [change::TYPE, change::SEQUENCE].into_iter().find(|name| changes && *name == field.name())
            {
                change.insert(field.number().unsigned_abs(), name);
                continue;
            }
            let Some(column) = table.known.iter().find(|column| column.name.eq_ignore_ascii_case(field.name())) else {
                extra.push(format!("'{}'", field.name()));
                continue;
            };
            let wire = fits(field, column).map_err(&invalid)?;
            let number = u32::try_from(field.number()).ok().filter(|number| *number > 0);
            let number =
                number.ok_or_else(|| invalid(format!("field {} has number {}.", field.name(), field.number())))?;
            if fields.values().any(|known: &Field| known.column.name == column.name)
                || fields.insert(number, Field { column: column.clone(), wire }).is_some()
            {
                return Err(invalid(format!("field {} or its number is there twice.", field.name())));
            }
        }
        if !extra.is_empty() {
            let message = format!(
                "Input schema has more fields than BigQuery schema, extra fields: {} Entity: {path}",
                extra.join(", ")
            );
            return Err(
                Refusal::new(Code::InvalidArgument, message).of(StorageErrorCode::SchemaMismatchExtraFields, path)
            );
        }
        let mut required = Vec::new();
        for column in table.known.iter().filter(|column| column.mode == Mode::Required) {
            if column.default.is_some() && defaults(&column.name) {
                continue;
            }
            if !fields.values().any(|field| field.column.name == column.name) {
                return Err(invalid(format!("the required field {} is missing.", column.name)));
            }
            required.push(column.name.clone());
        }
        let (partition_by, primary_key) = (table.partition_by.clone(), table.primary_key.clone());
        Ok(Self { fields, required, partition_by, change, primary_key })
    }

    /// Reads a row: a value for each column that it has. The error is why the table refuses it.
    pub(super) fn row(&self, mut bytes: &[u8]) -> Result<Map<String, Value>, String> {
        let mut row = Map::new();
        while !bytes.is_empty() {
            let (number, wire) = decode_key(&mut bytes).map_err(|error| format!("not a message: {error}"))?;
            let raw = raw(wire, &mut bytes).map_err(|error| format!("field {number}: {error}"))?;
            if let Some(name) = self.change.get(&number) {
                let Raw::Bytes(text) = raw else { return Err(format!("{name} is no text")) };
                row.insert((*name).to_owned(), String::from_utf8_lossy(text).into_owned().into());
                continue;
            }
            let field = self.fields.get(&number).ok_or_else(|| format!("field {number} is not in the schema"))?;
            let named = |why: String| format!("Field {}: {why}", field.column.name);
            let value = value::read(&field.column, field.wire, raw).map_err(named)?;
            if self.partition_by.as_ref().is_some_and(|by| by.eq_ignore_ascii_case(&field.column.name)) {
                value::partition(field.column.kind, &value).map_err(named)?;
            }
            if row.insert(field.column.name.clone(), value).is_some() {
                return Err(named("is there twice".to_owned()));
            }
        }
        if let Some(name) = self.required.iter().find(|name| !row.contains_key(*name)) {
            return Err(format!("Field {name}: a required value is missing"));
        }
        if self.changes() {
            Change::take(&mut row.clone(), &self.primary_key)?;
        }
        Ok(row)
    }

    /// Whether rows replace others.
    pub(super) fn changes(&self) -> bool {
        !self.change.is_empty()
    }
}

/// A field as it stands in a message.
pub(super) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

fn raw<'a>(wire: WireType, bytes: &mut &'a [u8]) -> Result<Raw<'a>, String> {
    let short = || "it is cut off".to_owned();
    match wire {
        WireType::Varint => Ok(Raw::Varint(decode_varint(bytes).map_err(|error| error.to_string())?)),
        WireType::SixtyFourBit => {
            let (first, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
            *bytes = rest;
            Ok(Raw::Fixed64(u64::from_le_bytes(*first)))
        }
        WireType::LengthDelimited => {
            let length = decode_varint(bytes).map_err(|error| error.to_string())?;
            let length = usize::try_from(length).map_err(|_| short())?;
            let (first, rest) = bytes.split_at_checked(length).ok_or_else(short)?;
            *bytes = rest;
            Ok(Raw::Bytes(first))
        }
        other => Err(format!("the fake does not know the wire type {other:?}")),
    }
}

/// Whether a field may fill a column: cloud.google.com/bigquery/docs/supported-data-types, of which the fake takes what
/// needs no conversion.
fn fits(field: &FieldDescriptorProto, column: &Column) -> Result<Wire, String> {
    let takes: &[Wire] = match column.kind {
        Type::Bool => &[Wire::Bool],
        Type::Int64 => &[Wire::Int64, Wire::Int32],
        Type::Double => &[Wire::Double],
        Type::String | Type::Json | Type::Geography | Type::Interval => &[Wire::String],
        Type::Bytes => &[Wire::Bytes],
        Type::Numeric | Type::Bignumeric | Type::Time | Type::Datetime => &[Wire::String, Wire::Int64],
        Type::Timestamp => &[Wire::Int64],
        Type::Date => &[Wire::Int32, Wire::String],
        Type::Struct | Type::Range | Type::Unspecified => &[],
    };
    let repeated = field.label() == Label::Repeated;
    if repeated != (column.mode == Mode::Repeated) {
        return Err(format!("field {} is {:?}, its column {:?}.", field.name(), field.label(), column.mode));
    }
    if repeated || !takes.contains(&field.r#type()) {
        let (kind, column) = (field.r#type().as_str_name(), column.kind.as_str_name());
        return Err(format!("field {} has type {kind}, which column type {column} does not take.", field.name()));
    }
    Ok(field.r#type())
}
