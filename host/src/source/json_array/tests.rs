//! Values in pieces of any size, arrays that break, values above the limit.

use super::*;
use crate::digest::{Digest, Running};
use std::io::{self, Read};

struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let at_once = self.1.min(into.len());
        self.0.read(&mut into[..at_once])
    }
}

/// The values of a text that comes in pieces, and what is wrong behind them.
fn split(text: &[u8], at_once: usize, limit: usize) -> (Vec<Line>, Option<String>) {
    let mut values = Values::new(Buffer::new(0, Some(Running::default())), limit, 0);
    let (mut input, mut is_all, mut lines) = (Slow(text, at_once), false, Vec::new());
    loop {
        match values.next(is_all) {
            Ok(Some(line)) => lines.push(line),
            Ok(None) if is_all => {
                let given = usize::try_from(values.buffer.given()).unwrap();
                assert_eq!(values.buffer.digest(), Some(Digest::of(&text[..given])));
                return (lines, None);
            }
            Ok(None) => is_all = !values.buffer.fill(&mut input).unwrap(),
            Err(what) => return (lines, Some(what)),
        }
    }
}

fn texts(text: &str, limit: usize) -> (Vec<String>, Option<String>) {
    let of = |at_once| {
        let (lines, wrong) = split(text.as_bytes(), at_once, limit);
        let texts = lines.iter().map(|line| String::from_utf8(line.bytes.to_vec()).unwrap());
        (texts.collect::<Vec<_>>(), wrong)
    };
    let expected = of(text.len().max(1));
    for at_once in [1, 2, 5] {
        assert_eq!(of(at_once), expected, "{at_once} at once");
    }
    expected
}

#[test]
fn values_keep_their_bytes() {
    let text = " [ {\"a\" : 1.50, \"b\":[1, 2]} ,\n\"x\\\"]\",12,null,[ ] , {} ]\n";
    let (values, wrong) = texts(text, 100);
    assert_eq!(values, ["{\"a\" : 1.50, \"b\":[1, 2]}", "\"x\\\"]\"", "12", "null", "[ ]", "{}"]);
    assert_eq!(wrong, None);
    for nothing in ["", " \n", "[]", " [ ] "] {
        assert_eq!(texts(nothing, 100), (vec![], None), "{nothing:?}");
    }
    // What is no text is for the rule to judge.
    assert_eq!(split(b"[\"\xff\"]", 100, 100).0[0].bytes.as_ref(), b"\"\xff\"");
}

#[test]
fn what_stands_before_a_break_is_given_out_and_the_break_is_told() {
    let broken = |text: &str, values: usize, what: &str| {
        let (texts, wrong) = texts(text, 100);
        let wrong = wrong.unwrap();
        assert_eq!(texts.len(), values, "{text}");
        assert!(wrong.contains(what), "{text}: {wrong}");
    };
    broken("{\"a\":1}\n", 0, "format = \"lines\"");
    broken("[{}", 1, "value 2 of its array, at byte 3: the file ends and the array does not");
    broken("[1, 2", 1, "value 2 of its array, at byte 2: the file ends and the value does not");
    broken("[1, 2, ", 2, "value 3 of its array, at byte 5: the file ends and the value does not");
    broken("[1, -", 1, "value 2 of its array, at byte 2: invalid number");
    broken("[{\"a\":1}, {\"a\":", 1, "value 2 of its array");
    broken("[1 2]", 1, "neither `,` nor `]`");
    broken("[1,]", 1, "expected value");
    broken("[1,{a}]", 1, "key must be a string at line 1 column 2 of it");
    broken("[1x]", 0, "trailing characters");
    broken("[1] 2", 1, "something stands behind its array of 1 values");
    broken("[1][2]", 1, "something stands behind");
}

#[test]
fn a_value_above_the_limit_is_passed_over() {
    let limit = 20;
    let texts_above = ["x".repeat(30), "a\\\"b]".repeat(10)].map(|text| format!("\"{text}\""));
    let nested = format!("{{\"a\":[{}],\"b\":\"]}}\\\\\"}}", "1,".repeat(20) + "1");
    for above in [&texts_above[0], &texts_above[1], &nested, &"1".repeat(30)] {
        let text = format!("[1, {above} ,2]");
        for at_once in [1, 3] {
            let (lines, wrong) = split(text.as_bytes(), at_once, limit);
            assert_eq!((lines.len(), wrong), (3, None), "{text}");
            assert_eq!(lines[1].too_long, Some((above.len() as u64, Digest::of(above.as_bytes()))), "{text}");
            assert_eq!(lines[2].bytes.as_ref(), b"2");
        }
    }
    let (_, wrong) = split(format!("[\"{}", "x".repeat(50)).as_bytes(), 1, limit);
    assert!(wrong.unwrap().contains("the file ends and the value does not"));
}

#[test]
fn depth_is_no_recursion() {
    let deep = format!("[{}1{}]", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(texts_len(&deep), 1);
}

fn texts_len(text: &str) -> usize {
    let (lines, wrong) = split(text.as_bytes(), 1 << 16, 1 << 20);
    assert_eq!(wrong, None);
    lines.len()
}

#[test]
fn blanks_are_not_held() {
    let blank = " ".repeat(3 * CHUNK);
    let text = format!("{blank}[{blank}1{blank},{blank}2{blank}]{blank}");
    let (lines, wrong) = split(text.as_bytes(), CHUNK, 10 * CHUNK);
    assert_eq!((lines.len(), wrong), (2, None));
    // Those in front of a value are, so there are not to be more than that may be held.
    let (lines, wrong) = split(text.as_bytes(), CHUNK, CHUNK);
    assert!(lines.len() == 1 && wrong.unwrap().contains("nothing but blanks"));
}

#[test]
fn it_goes_on_behind_any_value() {
    let text = b"[1, {\"a\":2} ,3]";
    let mut values = Values::new(Buffer::new(0, None), 100, 0);
    values.buffer.fill(&mut &text[..]).unwrap();
    for (count, expected) in (1..).zip(["1", "{\"a\":2}", "3"]) {
        assert_eq!(values.next(true).unwrap().unwrap().bytes, expected);
        let at = values.buffer.given();
        let mut again = Values::new(Buffer::new(at, None), 100, count);
        again.buffer.fill(&mut &text[usize::try_from(at).unwrap()..]).unwrap();
        let rest = std::iter::from_fn(|| again.next(true).unwrap()).count() as u64;
        assert_eq!(rest, 3 - count);
    }
}
