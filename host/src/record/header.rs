//! The record that names the columns of a file.

use super::Dialect;
use csv_core::{QuoteStyle, WriterBuilder};

/// The header of these columns, without a newline behind it.
pub fn header(names: &[String], dialect: Dialect) -> String {
    let mut builder = WriterBuilder::new();
    builder.delimiter(dialect.delimiter);
    match dialect.quote {
        Some(quote) => builder.quote(quote),
        None => builder.quote_style(QuoteStyle::Never),
    };
    let mut writer = builder.build();
    // A quote is doubled at most, and a field has two around it and a delimiter behind.
    let mut bytes = vec![0; names.iter().map(|name| 2 * name.len() + 3).sum::<usize>() + 2];
    let mut written = 0;
    for (number, name) in names.iter().enumerate() {
        if number > 0 {
            written += writer.delimiter(&mut bytes[written..]).1;
        }
        written += writer.field(name.as_bytes(), &mut bytes[written..]).2;
    }
    written += writer.finish(&mut bytes[written..]).1;
    bytes.truncate(written);
    String::from_utf8(bytes).expect("names are texts, and what divides them is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fields;

    #[test]
    fn a_header_reads_back() {
        let names = ["id", "a, b", "say \"x\"", "two\nlines", "é"].map(str::to_owned);
        for dialect in [Dialect::default(), Dialect { delimiter: b';', quote: Some(b'\'') }] {
            assert_eq!(fields(dialect, header(&names, dialect).as_bytes()).unwrap(), names);
        }
        assert_eq!(header(&names[..2], Dialect::default()), "id,\"a, b\"");
        let plain = Dialect { delimiter: b'\t', quote: None };
        assert_eq!(header(&["a".into(), "\"b".into()], plain), "a\t\"b");
    }
}
