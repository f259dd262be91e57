//! From merged layers to [`RawConfig`]. Unknown keys are refused here, all of them at once, with the nearest known key.

use super::RawConfig;
use crate::config::layers::{Layers, join};
use crate::config::problem::{ConfigError, Problem, nearest};
use toml::{Table, Value};

/// Parses the merged layers. Every unknown key is reported; then the first value of the wrong type.
pub(in crate::config) fn parse(layers: &Layers) -> Result<RawConfig, ConfigError> {
    let mut table = layers.table.clone();
    let mut problems = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize::<_, RawConfig>(Value::Table(table.clone())) {
            Ok(raw) if problems.is_empty() => return Ok(raw),
            Ok(_) => return Err(ConfigError(problems)),
            Err(error) => error,
        };
        let mut path: Vec<String> = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                serde_path_to_error::Segment::Map { key } => Some(key.clone()),
                _ => None,
            })
            .collect();
        let message = error.inner().message();
        if message.ends_with("expected a string")
            && let Some(text) = layers.set_texts.get(&join(&path))
            && replace(&mut table, &path, Value::String(text.clone()))
        {
            // `--set name=1` means the text 1 where a text is wanted.
            continue;
        }
        let Some((unknown, known)) = unknown_field(message) else {
            // Rust's names for numbers say nothing to whoever writes the file.
            let what = ["usize", "u64", "u32"].iter().fold(message.to_owned(), |what, kind| {
                what.replace(&format!("expected {kind}"), "expected a whole number that is not negative")
            });
            problems.push(problem(layers, &path, what));
            return Err(ConfigError(problems));
        };
        if path.last().map(String::as_str) != Some(unknown.as_str()) {
            path.push(unknown.clone());
        }
        problems.push(problem(layers, &path, unknown_key(&unknown, &known)));
        if !remove(&mut table, &path) {
            return Err(ConfigError(problems));
        }
    }
}

fn problem(layers: &Layers, path: &[String], what: String) -> Problem {
    let key = join(path);
    Problem { origin: layers.origin(&key).map(str::to_owned), key, what }
}

/// The unknown field and the known ones, from serde's message; its form is fixed by a test.
fn unknown_field(message: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let mut names = rest.split('`').step_by(2).map(str::to_owned);
    let unknown = names.next()?;
    Some((unknown, names.filter(|name| !name.is_empty()).collect()))
}

fn unknown_key(unknown: &str, known: &[String]) -> String {
    match nearest(unknown, known.iter().map(String::as_str)) {
        Some(name) => format!("unknown key; did you mean `{name}`?"),
        None => format!("unknown key; known here: {}", known.join(", ")),
    }
}

/// Puts another value in the place of one that is not that already.
fn replace(table: &mut Table, path: &[String], value: Value) -> bool {
    match path {
        [key] => table.get_mut(key).is_some_and(|old| std::mem::replace(old, value.clone()) != value),
        [key, rest @ ..] => {
            table.get_mut(key).and_then(Value::as_table_mut).is_some_and(|inner| replace(inner, rest, value))
        }
        [] => false,
    }
}

fn remove(table: &mut Table, path: &[String]) -> bool {
    match path {
        [key] => table.remove(key).is_some(),
        [key, rest @ ..] => table.get_mut(key).and_then(Value::as_table_mut).is_some_and(|inner| remove(inner, rest)),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn error(text: &str) -> String {
        let mut layers = Layers::default();
        layers.lay_file(text, "p.toml", Path::new("")).unwrap();
        parse(&layers).unwrap_err().to_string()
    }

    #[test]
    fn every_unknown_key_is_named_with_its_line_and_the_nearest_key() {
        let text = "nmae = 'x'\n[silver]\ntabel = 't'\ntable = 't'\n[limits]\nspeed = 1\n";
        let lines = error(text);
        assert!(lines.contains("p.toml:1: nmae: unknown key; did you mean `name`?"), "{lines}");
        assert!(lines.contains("p.toml:3: silver.tabel: unknown key; did you mean `table`?"), "{lines}");
        assert!(lines.contains("p.toml:6: limits.speed: unknown key; known here: fuel_base"), "{lines}");
    }

    #[test]
    fn a_wrong_type_and_a_missing_key_are_named() {
        assert!(error("name = 1\n").contains("p.toml:1: name: invalid type: integer `1`, expected a string"));
        assert!(error("name = 'x'\n").contains("missing field `source`"));
    }
}
