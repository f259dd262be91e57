//! Where events come from, and how they stand there.

use super::check::Check;
use crate::config::raw::{RawCsv, RawSource};
use crate::config::{CsvOptions, Format, SourceConfig};
use crate::record::{Columns, Dialect};
use std::sync::Arc;

impl Check {
    pub(super) fn source(&mut self, raw: RawSource) -> Option<SourceConfig> {
        match (raw.file, raw.stdin, raw.pubsub) {
            (Some(file), None, None) => {
                self.path("source.file.path", &file.path);
                let format = self.format("source.file", file.format.as_deref(), file.csv);
                Some(SourceConfig::File { path: file.path.into(), format: format? })
            }
            (None, Some(stdin), None) => {
                let format = self.format("source.stdin", stdin.format.as_deref(), stdin.csv);
                Some(SourceConfig::Stdin { format: format? })
            }
            (None, None, Some(pubsub)) => Some(SourceConfig::Pubsub(self.pubsub(pubsub)?)),
            _ => self.refuse("source", "give exactly one of source.file, source.stdin, source.pubsub"),
        }
    }

    fn format(&mut self, key: &str, format: Option<&str>, csv: Option<RawCsv>) -> Option<Format> {
        let csv = csv.map(|csv| self.csv(&format!("{key}.csv"), csv));
        match (format.unwrap_or("lines").parse(), csv) {
            (Ok(Format::Csv(_)), Some(options)) => Some(Format::Csv(Arc::new(options?))),
            (Ok(_), Some(_)) => {
                self.refuse(&format!("{key}.csv"), format!("is for CSV: write {key}.format = \"csv\", or leave it out"))
            }
            (Ok(format), None) => Some(format),
            (Err(what), _) => self.refuse(&format!("{key}.format"), what),
        }
    }

    fn csv(&mut self, key: &str, raw: RawCsv) -> Option<CsvOptions> {
        let key = |name: &str| format!("{key}.{name}");
        let known = self.problems.len();
        let default = Dialect::default();
        let delimiter = raw.delimiter.map_or(Some(default.delimiter), |text| self.byte(&key("delimiter"), &text));
        let quote = match raw.quote.as_deref() {
            None => default.quote,
            Some("") => None,
            Some(text) => self.byte(&key("quote"), text),
        };
        if delimiter.is_some() && delimiter == quote {
            self.refuse::<()>(&key("delimiter"), "is the quote, too: they must differ");
        }
        let header = raw.header.unwrap_or(true);
        if !header && raw.columns.is_none() {
            self.refuse::<()>(&key("columns"), "name the columns: the files have no header");
        }
        if let Some(columns) = &raw.columns
            && let Err(what) = Columns::new(columns.clone(), default)
        {
            self.refuse::<()>(&key("columns"), what);
        }
        let options = CsvOptions { dialect: Dialect { delimiter: delimiter?, quote }, header, columns: raw.columns };
        (self.problems.len() == known).then_some(options)
    }

    /// A byte that can stand between fields or around one.
    fn byte(&mut self, key: &str, text: &str) -> Option<u8> {
        match *text.as_bytes() {
            [b'\n' | b'\r'] => self.refuse(key, "ends a line, and cannot be that, too"),
            [byte] => Some(byte),
            _ => self.refuse(key, format!("{text:?} is not one ASCII character")),
        }
    }
}
