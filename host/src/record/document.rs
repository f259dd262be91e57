//! From the text of a record to its fields, and to the JSON object that rules see.

use super::{Columns, Dialect, Scan, Seen};
use crate::rules::convert::REASON;
use crate::verdict::{Rejection, clip, stage};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use std::cell::RefCell;
use std::fmt;

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wrong {
    Encoding(usize),
    Unclosed,
    BehindQuote,
    Fewer(usize),
    More(usize),
}

thread_local! {
    /// Kept, so that a record needs no memory of its own but for the object.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Splits records of one dialect.
struct Parser {
    dialect: Dialect,
    reader: Reader,
    /// Fields one after another, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The JSON object of a record, or the rejection.
pub(super) fn of(columns: &Columns, text: &[u8], message_id: &str) -> Result<Box<[u8]>, Rejection> {
    let wrong = match object(columns, text) {
        Ok(object) => return Ok(object.into_boxed_slice()),
        Err(wrong) => wrong,
    };
    let mut reason = format!("{message_id}: {wrong}");
    let all = columns.names();
    match wrong {
        Wrong::Fewer(count) => {
            let missing: Vec<String> = all[count..].iter().map(|name| format!("`{name}`")).collect();
            let are = if missing.len() == 1 { "is" } else { "are" };
            reason.push_str(&format!(", of {} columns: {} {are} missing", all.len(), missing.join(", ")));
        }
        Wrong::More(_) => reason.push_str(&format!(", of {} columns", all.len())),
        Wrong::Encoding(_) | Wrong::Unclosed | Wrong::BehindQuote => {}
    }
    // Names of columns may be as long as a header.
    Err(Rejection::by_host(stage::PARSE_CSV, wrong.code(), clip(&reason, REASON)))
}

impl Wrong {
    const fn code(&self) -> &'static str {
        match self {
            Self::Encoding(_) => "not_utf8",
            Self::Unclosed => "unclosed_quote",
            Self::BehindQuote => "text_behind_quote",
            Self::Fewer(_) => "missing_fields",
            Self::More(_) => "extra_fields",
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding(at) => write!(f, "not UTF-8 from byte {at} of the record on"),
            Self::Unclosed => f.write_str("a quote is opened in this line and not closed as it should be"),
            Self::BehindQuote => f.write_str("text stands behind the quote that closes a field"),
            Self::Fewer(1) | Self::More(1) => f.write_str("1 field"),
            Self::Fewer(count) | Self::More(count) => write!(f, "{count} fields"),
        }
    }
}

/// The fields of a record, as texts. The error says what is wrong with it.
pub fn fields(dialect: Dialect, text: &[u8]) -> Result<Vec<String>, String> {
    let all = |parser: &Parser| parser.all().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
    split(dialect, text, |parser| Ok(all(parser))).map_err(|wrong| wrong.to_string())
}

fn object(columns: &Columns, text: &[u8]) -> Result<Vec<u8>, Wrong> {
    split(columns.dialect(), text, |parser| {
        let (count, wanted) = (parser.ends.len(), columns.before.len());
        if count < wanted {
            return Err(Wrong::Fewer(count));
        }
        if count > wanted {
            return Err(Wrong::More(count));
        }
        let mut object = Vec::with_capacity(text.len() + columns.weight() + 1);
        for (before, field) in columns.before.iter().zip(parser.all()) {
            object.extend_from_slice(before.as_bytes());
            // Dividers and quotes are single ASCII bytes: a part of a text between them is a text.
            let field = std::str::from_utf8(field).map_err(|_| Wrong::Encoding(0))?;
            serde_json::to_writer(&mut object, field).expect("writing to memory cannot fail");
        }
        object.push(b'}');
        Ok(object)
    })
}

/// Splits a record, and hands its fields over.
fn split<T>(dialect: Dialect, text: &[u8], use_it: impl FnOnce(&Parser) -> Result<T, Wrong>) -> Result<T, Wrong> {
    check(dialect, text)?;
    PARSER.with_borrow_mut(|kept| {
        let parser = match kept {
            Some(parser) if parser.dialect == dialect => parser,
            kept => kept.insert(Parser::new(dialect)),
        };
        parser.read(text);
        use_it(parser)
    })
}

/// Whether it is text, and one record.
fn check(dialect: Dialect, text: &[u8]) -> Result<(), Wrong> {
    std::str::from_utf8(text).map_err(|error| Wrong::Encoding(error.valid_up_to()))?;
    match Scan::default().go_on(dialect, text, true) {
        // The carriage return of the line's end was taken off: one that is left stands in the record.
        Seen::End(end) if end == text.len() && !is_return_behind_quote(dialect, text) => Ok(()),
        Seen::More => Err(Wrong::Unclosed),
        Seen::End(_) | Seen::Malformed => Err(Wrong::BehindQuote),
    }
}

/// Whether the last field is closed by a quote, and a carriage return stands behind it.
fn is_return_behind_quote(dialect: Dialect, text: &[u8]) -> bool {
    let Some(before) = text.strip_suffix(b"\r") else { return false };
    // An unquoted field may end so.
    Scan::default().go_on(dialect, &[before, b"x"].concat(), true) == Seen::Malformed
}

impl Parser {
    fn new(dialect: Dialect) -> Self {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(dialect.delimiter).terminator(Terminator::Any(b'\n'));
        match dialect.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        let mut reader = builder.build();
        // What is read first would be stripped of a byte order mark, and is no beginning of a file.
        reader.read_record(b"-\n", &mut [0; 2], &mut [0; 2]);
        Self { dialect, reader, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Splits a record that is whole.
    fn read(&mut self, text: &[u8]) {
        let Self { reader, bytes, ends, .. } = self;
        // Fields are never longer than their record.
        bytes.resize(text.len().max(bytes.len()), 0);
        ends.resize(ends.capacity().max(16), 0);
        let (mut rest, mut written, mut count) = (text, 0, 0);
        loop {
            // Without input it is told that the record ends here.
            let (result, read, wrote, ended) = reader.read_record(rest, &mut bytes[written..], &mut ends[count..]);
            rest = &rest[read..];
            written += wrote;
            count += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => bytes.resize(bytes.len() * 2 + 1, 0),
                ReadRecordResult::OutputEndsFull => ends.resize(ends.len() * 2, 0),
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        if count == 0 {
            // An empty record is one empty field.
            ends[0] = 0;
            count = 1;
        }
        ends.truncate(count);
    }

    fn all(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &[&str], dialect: Dialect) -> Columns {
        Columns::new(names.iter().map(|&name| name.to_owned()).collect(), dialect).unwrap()
    }

    fn object(names: &[&str], text: &str) -> String {
        String::from_utf8(of(&columns(names, Dialect::default()), text.as_bytes(), "f:7").unwrap().into()).unwrap()
    }

    #[track_caller]
    fn rejected(text: impl AsRef<[u8]>) -> (String, String) {
        let names: Vec<String> = (0..3).map(|n| format!("column {n}")).collect();
        let columns = Columns::new(names, Dialect::default()).unwrap();
        let rejection = of(&columns, text.as_ref(), "f:7").unwrap_err();
        assert_eq!(rejection.stage, stage::PARSE_CSV);
        (rejection.code.unwrap().into_owned(), rejection.reason)
    }

    #[test]
    fn a_record_is_an_object_of_texts_in_the_order_of_the_columns() {
        assert_eq!(object(&["b", "a\"é"], "1,2"), r#"{"b":"1","a\"é":"2"}"#);
        assert_eq!(object(&["a", "b"], "\"x, \"\"y\"\"\n\tz\","), r#"{"a":"x, \"y\"\n\tz","b":""}"#);
        assert_eq!(object(&["a", "b"], "x\"y, \"z\""), r#"{"a":"x\"y","b":" \"z\""}"#);
        assert_eq!(object(&["a"], ""), r#"{"a":""}"#);
        assert_eq!(object(&["a"], "\"\""), r#"{"a":""}"#);
        assert_eq!(object(&["a", "b"], "x\ry,\u{1}"), "{\"a\":\"x\\ry\",\"b\":\"\\u0001\"}");
    }

    /// The parser takes it for that of the file, whatever record it stands in.
    #[test]
    fn a_byte_order_mark_that_is_not_the_files_stays() {
        assert_eq!(object(&["a"], "\u{feff}x"), "{\"a\":\"\u{feff}x\"}");
    }

    #[test]
    fn other_dialects() {
        let columns = columns(&["a", "b"], Dialect { delimiter: b';', quote: None });
        assert_eq!(of(&columns, b"\"x;y\"", "f:1").unwrap().as_ref(), br#"{"a":"\"x","b":"y\""}"#);
    }

    #[test]
    fn a_field_more_or_less_is_counted() {
        let (code, reason) = rejected("1");
        assert_eq!(code, "missing_fields");
        assert_eq!(reason, "f:7: 1 field, of 3 columns: `column 1`, `column 2` are missing");
        assert_eq!(rejected("1,2").1, "f:7: 2 fields, of 3 columns: `column 2` is missing");
        assert_eq!(rejected("1,2,3,4"), ("extra_fields".into(), "f:7: 4 fields, of 3 columns".into()));
        assert_eq!(rejected(",".repeat(1_000)).1, "f:7: 1001 fields, of 3 columns");
    }

    #[test]
    fn quotes_and_encoding_are_checked() {
        assert_eq!(rejected("1,\"2,3").0, "unclosed_quote");
        assert_eq!(rejected("1,\"2\"x,3").0, "text_behind_quote");
        // Of a line that ends with two carriage returns.
        assert_eq!(rejected("1,2,\"3\"\r").0, "text_behind_quote");
        // No source makes such a record; a row that somebody changed may.
        assert_eq!(rejected("1,2,3\n4,5,6").0, "text_behind_quote");
        let (code, reason) = rejected(b"1,\xff,3");
        assert_eq!((code.as_str(), reason.as_str()), ("not_utf8", "f:7: not UTF-8 from byte 2 of the record on"));
    }

    #[test]
    fn a_reason_is_bounded() {
        let names = (0..100).map(|n| format!("{n}{}", "x".repeat(1_000))).collect();
        let columns = Columns::new(names, Dialect::default()).unwrap();
        assert!(of(&columns, b"1", "f:7").unwrap_err().reason.len() <= REASON);
    }

    #[test]
    fn the_fields_of_a_header() {
        assert_eq!(fields(Dialect::default(), b"a,\"b, c\"").unwrap(), ["a", "b, c"]);
        assert!(fields(Dialect::default(), b"a,\"b").unwrap_err().contains("quote"));
        assert!(fields(Dialect::default(), b"\xff").unwrap_err().contains("UTF-8"));
    }
}
