//! Where a record of a delimited text ends. A quote byte that begins a field opens it, two of them inside it are one, and
//! behind the one that closes it stands a delimiter or the end of the line; anywhere else it is a byte like others.

/// What divides fields, and what encloses those that hold dividers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Stands between two fields.
    pub delimiter: u8,
    /// Stands around a field; none where no field is enclosed.
    pub quote: Option<u8>,
}

impl Default for Dialect {
    /// As in RFC 4180.
    fn default() -> Self {
        Self { delimiter: b',', quote: Some(b'"') }
    }
}

/// What was found out about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The record is whole, and ends with the newline at this place, or with the text.
    End(usize),
    /// Text stands behind a quote that closes a field.
    Malformed,
    /// It ends, if it does, in what was not seen yet. At the end of all there is, a quote is not closed.
    More,
}

/// Goes through a record from its first byte, as far as there is something to go through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scan {
    at: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    FieldStart,
    Unquoted,
    Quoted,
}

impl Scan {
    /// How far it went. Every newline before that stands between quotes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Says that so many bytes of the text are gone from its front.
    pub fn shift(&mut self, bytes: usize) {
        self.at = self.at.saturating_sub(bytes);
    }

    /// Goes on in the same text, which may have become longer. With `is_all` nothing comes behind it.
    pub fn go_on(&mut self, dialect: Dialect, text: &[u8], is_all: bool) -> Seen {
        let at_end = |seen| if is_all { Seen::End(text.len()) } else { seen };
        while self.at < text.len() {
            let rest = &text[self.at..];
            match self.state {
                State::FieldStart if dialect.quote == Some(rest[0]) => {
                    self.state = State::Quoted;
                    self.at += 1;
                }
                State::FieldStart => self.state = State::Unquoted,
                State::Unquoted => match memchr::memchr2(dialect.delimiter, b'\n', rest) {
                    Some(found) if rest[found] == b'\n' => return Seen::End(self.at + found),
                    Some(found) => {
                        self.state = State::FieldStart;
                        self.at += found + 1;
                    }
                    None => self.at = text.len(),
                },
                State::Quoted => {
                    let quote = dialect.quote.expect("a quote was seen");
                    let Some(found) = memchr::memchr(quote, rest) else {
                        self.at = text.len();
                        return Seen::More;
                    };
                    self.at += found;
                    match text[self.at + 1..] {
                        [next, ..] if next == quote => self.at += 2,
                        [next, ..] if next == dialect.delimiter => {
                            self.state = State::FieldStart;
                            self.at += 2;
                        }
                        [b'\n', ..] => return Seen::End(self.at + 1),
                        [b'\r', b'\n', ..] => return Seen::End(self.at + 2),
                        [] | [b'\r'] => return at_end(Seen::More),
                        _ => return Seen::Malformed,
                    }
                }
            }
        }
        if self.state == State::Quoted { Seen::More } else { at_end(Seen::More) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, is_all: bool) -> Seen {
        Scan::default().go_on(Dialect::default(), text.as_bytes(), is_all)
    }

    #[test]
    fn a_record_ends_at_a_newline_outside_of_quotes() {
        assert_eq!(seen("a,b\nc", false), Seen::End(3));
        assert_eq!(seen("\"a\nb\",c\nd", false), Seen::End(7));
        assert_eq!(seen("a,\"b\"\r\nc", false), Seen::End(6));
        assert_eq!(seen("a,\"b\"\nc", false), Seen::End(5));
        assert_eq!(seen("\"a\"\"\n\"\"b\"\nc", false), Seen::End(9));
        assert_eq!(seen("\"\"\n", false), Seen::End(2));
        // A quote that does not begin its field is a byte like others.
        assert_eq!(seen("a\"b, \"c\nd", false), Seen::End(7));
    }

    #[test]
    fn what_is_not_decided_yet_is_said() {
        for text in ["", "a", "a,", "\"", "\"a\"", "\"a\"\r", "\"a\n", "\"a\"\""] {
            assert_eq!(seen(text, false), Seen::More, "{text:?}");
        }
        for text in ["", "a", "a,", "\"a\"", "\"a\"\r", "a\"b"] {
            assert_eq!(seen(text, true), Seen::End(text.len()), "{text:?}");
        }
        for text in ["\"", "a,\"b\n", "\"a\"\""] {
            assert_eq!(seen(text, true), Seen::More, "{text:?} is never closed");
        }
    }

    #[test]
    fn text_behind_a_closing_quote_is_malformed() {
        for text in ["\"a\"b,c\n", "a,\"b\" \n", "\"a\"\rb\n"] {
            assert_eq!(seen(text, true), Seen::Malformed, "{text:?}");
        }
    }

    #[test]
    fn without_a_quote_byte_a_record_is_a_line() {
        let plain = Dialect { quote: None, delimiter: b';' };
        assert_eq!(Scan::default().go_on(plain, b"\"a;b\nc", false), Seen::End(4));
    }

    #[test]
    fn it_says_the_same_however_the_text_comes() {
        for text in ["\"a\n\"\"b\"\"\",c\r\nrest", "x,\"y\"z\n", "a,b\n", "\"a\n\n\n\"\r\n", "a,\"b"] {
            let mut scan = Scan::default();
            let mut said = Seen::More;
            for length in 0..=text.len() {
                said = scan.go_on(Dialect::default(), &text.as_bytes()[..length], false);
                if said != Seen::More {
                    break;
                }
            }
            assert_eq!(said, seen(text, false), "{text:?}");
        }
    }
}
