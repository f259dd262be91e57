//! Keys: the values of the columns that events are grouped by, as bytes. Equal values are equal bytes, null is a value like others.

use crate::row::Value;

/// The key of these values.
pub fn encode<'a>(values: impl IntoIterator<Item = &'a Value>) -> Vec<u8> {
    let mut key = Vec::new();
    for value in values {
        // Both zeros are one.
        let value = if matches!(value, Value::Float64(0.0)) { &Value::Float64(0.0) } else { value };
        postcard::to_io(value, &mut key).expect("writing to memory cannot fail");
    }
    key
}

/// The values of a key; what is no key has fewer.
pub fn decode(mut key: &[u8]) -> Vec<Value> {
    let mut values = Vec::new();
    while let Ok((value, rest)) = postcard::take_from_bytes(key) {
        values.push(value);
        key = rest;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_nothing_else_is_equal_to_it() {
        let values = [
            Value::Null,
            Value::Text(String::new()),
            Value::Text("a".into()),
            Value::Bytes(b"a".to_vec()),
            Value::Int64(-1),
            Value::Numeric("1".into()),
            Value::Boolean(false),
            Value::Date(3),
            Value::Timestamp(3),
        ];
        assert_eq!(decode(&encode(&values)), values);
        let keys: std::collections::BTreeSet<Vec<u8>> = values.iter().map(|value| encode([value])).collect();
        assert_eq!(keys.len(), values.len());
        // Two columns are not one that has both.
        let (ab, a) = (Value::Text("ab".into()), Value::Text("a".into()));
        assert_ne!(encode([&ab, &Value::Text(String::new())]), encode([&a, &Value::Text("b".into())]));
        assert_eq!(encode([&Value::Float64(-0.0)]), encode([&Value::Float64(0.0)]));
    }
}
