//! Rows that replace others: change data capture, on the default stream of a table with a primary key.

use super::decode::Decoder;
use super::refusal::Refusal;
use super::state::Written;
use super::table::Table;
use prost_types::DescriptorProto;
use prost_types::field_descriptor_proto::Type as Wire;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tonic::Code;

/// The pseudocolumns.
pub(super) const TYPE: &str = "_CHANGE_TYPE";
pub(super) const SEQUENCE: &str = "_CHANGE_SEQUENCE_NUMBER";

/// What tells the newer of two rows: four sections.
pub(super) type Sequence = [u64; 4];

/// Whether the rows of a descriptor change others. Refuses them where they cannot.
pub(super) fn wanted(descriptor: &DescriptorProto, table: &Table, stream: &str) -> Result<bool, Refusal> {
    let invalid = |why: &str| Err(Refusal::new(Code::InvalidArgument, format!("{why} Entity: {stream}")));
    let field = |name: &str| descriptor.field.iter().find(|field| field.name() == name);
    let Some(kind) = field(TYPE) else {
        return match field(SEQUENCE) {
            None => Ok(false),
            Some(_) => invalid("_CHANGE_SEQUENCE_NUMBER goes with _CHANGE_TYPE only."),
        };
    };
    if [Some(kind), field(SEQUENCE)].into_iter().flatten().any(|field| field.r#type() != Wire::String) {
        return invalid("The pseudocolumns of a change are STRING.");
    }
    if !stream.ends_with("/streams/_default") {
        return invalid("_CHANGE_TYPE is taken by the default stream only.");
    }
    if table.primary_key.is_empty() {
        return invalid("_CHANGE_TYPE is taken for tables with a primary key only.");
    }
    Ok(true)
}

/// Reads `UPSERT` or `DELETE`: whether the row is deleted.
pub(super) fn is_delete(text: &str) -> Result<bool, String> {
    match text {
        "UPSERT" => Ok(false),
        "DELETE" => Ok(true),
        other => Err(format!("{TYPE} is {other:?} and neither UPSERT nor DELETE")),
    }
}

/// Reads one to four sections of one to sixteen hexadecimal digits each.
pub(super) fn sequence(text: &str) -> Result<Sequence, String> {
    let wrong = || format!("{SEQUENCE} {text:?} is not of one to four sections of one to sixteen hexadecimal digits");
    let mut sequence = Sequence::default();
    let sections: Vec<&str> = text.split('/').collect();
    let first = sequence.len().checked_sub(sections.len()).ok_or_else(wrong)?;
    for (place, section) in sequence[first..].iter_mut().zip(sections) {
        let is_good = (1..=16).contains(&section.len()) && section.bytes().all(|byte| byte.is_ascii_hexdigit());
        *place = u64::from_str_radix(section, 16).ok().filter(|_| is_good).ok_or_else(wrong)?;
    }
    Ok(sequence)
}

/// A row as it was sent, without what it is to do.
pub(super) struct Change {
    key: String,
    is_delete: bool,
    sequence: Sequence,
}

impl Change {
    /// Takes what a row is to do out of it.
    pub(super) fn take(row: &mut Map<String, Value>, primary_key: &[String]) -> Result<Self, String> {
        let mut text = |name: &str| row.remove(name).and_then(|value| value.as_str().map(str::to_owned));
        let kind = text(TYPE).ok_or_else(|| format!("{TYPE} is missing"))?;
        // BigQuery would go by the order in which rows come; whoever writes here wants no order.
        let number = text(SEQUENCE).ok_or_else(|| format!("{SEQUENCE} is missing"))?;
        let key = primary_key.iter().map(|name| row.get(name).map(Value::to_string));
        let key = key.collect::<Option<Vec<_>>>().ok_or("a column of the primary key is missing")?;
        Ok(Self { key: key.join(","), is_delete: is_delete(&kind)?, sequence: sequence(&number)? })
    }
}

/// The rows of a table by their primary key: of each key the newest, be it that it was deleted.
#[derive(Default)]
pub(super) struct Keyed(BTreeMap<String, (Sequence, Option<Written>)>);

impl Keyed {
    /// Takes a row that was read before.
    pub(super) fn change(&mut self, written: Written, decoder: &Decoder, primary_key: &[String]) {
        let (_, bytes) = written.row.as_ref().expect("a change is no row of another writer");
        let mut row = decoder.row(bytes).expect("it was read before");
        let Change { key, is_delete, sequence } = Change::take(&mut row, primary_key).expect("it was read before");
        // Of equal ones the last is the newest.
        if self.0.get(&key).is_none_or(|(newest, _)| *newest <= sequence) {
            self.0.insert(key, (sequence, (!is_delete).then_some(written)));
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Written> {
        self.0.values().filter_map(|(_, row)| row.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_compared_section_by_section() {
        let ordered = ["0", "A", "10", "FFFFFFFFFFFFFFFF", "1/0", "1/a", "2/1", "1/0/0", "1/0/0/0"];
        let read: Vec<Sequence> = ordered.iter().map(|text| sequence(text).unwrap()).collect();
        assert!(read.is_sorted_by(|a, b| a < b), "{read:?}");
        for bad in ["", "/", "1/", "g", "-1", "+1", "0x1", "1/2/3/4/5", "00000000000000001"] {
            assert!(sequence(bad).is_err(), "{bad}");
        }
        assert!(is_delete("upsert").is_err() && is_delete("INSERT").is_err());
    }
}
