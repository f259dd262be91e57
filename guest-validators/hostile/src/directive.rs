//! What a payload asks for.

/// A misbehaviour by name, and how much of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    /// The name, up to the first colon.
    pub(crate) name: String,
    /// What follows the first colon, if there is one.
    pub(crate) argument: Option<String>,
}

impl Directive {
    /// Reads `NAME` or `NAME:ARGUMENT`. Bytes that are not UTF-8 become U+FFFD: such a payload names nothing.
    pub(crate) fn parse(payload: &[u8]) -> Self {
        let text = String::from_utf8_lossy(payload);
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument.to_owned())),
            None => (&*text, None),
        };
        Self { name: name.to_owned(), argument }
    }

    /// The argument as text; empty if there is none.
    pub(crate) fn text(&self) -> &str {
        self.argument.as_deref().unwrap_or_default()
    }

    /// The argument as a number, `_` allowed.
    ///
    /// # Panics
    ///
    /// If there is none: the test that sent the event is wrong, and should see that.
    pub(crate) fn number(&self) -> i64 {
        let digits = self.text().replace('_', "");
        digits.parse().unwrap_or_else(|_| panic!("{} needs a number, found {:?}", self.name, self.argument))
    }

    /// The argument as a size or a number of times.
    pub(crate) fn size(&self) -> usize {
        usize::try_from(self.number())
            .unwrap_or_else(|_| panic!("{} needs a size, found {:?}", self.name, self.argument))
    }
}

#[cfg(test)]
mod tests {
    use super::Directive;

    #[test]
    fn a_payload_is_a_name_and_perhaps_an_argument() {
        let spin = Directive::parse(b"spin");
        assert_eq!((spin.name.as_str(), spin.argument.as_deref(), spin.text()), ("spin", None, ""));
        let spin = Directive::parse(b"spin:1_000");
        assert_eq!((spin.name.as_str(), spin.number(), spin.size()), ("spin", 1000, 1000));
        let json = Directive::parse(br#"json:{"a":1}"#);
        assert_eq!((json.name.as_str(), json.text()), ("json", r#"{"a":1}"#));
        assert_eq!(Directive::parse(b"time:-9223372036854775808").number(), i64::MIN);
        assert_eq!(Directive::parse(b"").name, "");
        assert_eq!(Directive::parse(b"\xff").name, "\u{fffd}");
    }

    #[test]
    #[should_panic(expected = "spin needs a number, found Some(\"x\")")]
    fn an_argument_that_is_no_number_shows_at_once() {
        Directive::parse(b"spin:x").number();
    }
}
