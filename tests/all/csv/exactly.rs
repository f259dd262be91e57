//! Records of any content, in files that are read on from their position after each micro-batch, and in pipes that give
//! them in pieces of any size, come back as they were written.

use super::gzip;
use futures::executor::block_on;
use preflight::config::{BatchConfig, CsvOptions, Format, SourceConfig};
use preflight::event::Event;
use preflight::record::Dialect;
use preflight::running_time::RunningTime;
use preflight::source::{self, Settings};
use preflight::stop::Stop;
use preflight::time::SystemClock;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What is written, and how.
#[derive(Debug, Clone)]
struct Written {
    columns: usize,
    records: Vec<Vec<String>>,
    dialect: Dialect,
    is_crlf: bool,
    always_quotes: bool,
    ends_with_newline: bool,
}

fn written() -> impl Strategy<Value = Written> {
    let field = vec(
        prop::sample::select(vec![",", ";", "\"", "'", "\n", "\r", "\r\n", " ", "a", "é", "\u{feff}", "1", "\t"]),
        0..6,
    );
    let field = field.prop_map(|parts| parts.concat());
    let dialect = (prop::sample::select(vec![b',', b';', b'\t']), prop::sample::select(vec![b'"', b'\'']));
    let dialect = dialect.prop_map(|(delimiter, quote)| Dialect { delimiter, quote: Some(quote) });
    (1..5_usize).prop_flat_map(move |columns| {
        let records = vec(vec(field.clone(), columns), 0..12);
        (Just(columns), records, dialect.clone(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(columns, records, dialect, is_crlf, always_quotes, ends_with_newline)| Written {
                columns,
                records,
                dialect,
                is_crlf,
                always_quotes,
                ends_with_newline,
            },
        )
    })
}

impl Written {
    fn names(&self) -> Vec<String> {
        (0..self.columns).map(|number| format!("c{number}")).collect()
    }

    /// As the csv crate writes it.
    fn text(&self) -> Vec<u8> {
        let mut writer = csv::WriterBuilder::new()
            .delimiter(self.dialect.delimiter)
            .quote(self.dialect.quote.unwrap())
            .terminator(if self.is_crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') })
            .quote_style(if self.always_quotes { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary })
            .from_writer(Vec::new());
        writer.write_record(self.names()).unwrap();
        for record in &self.records {
            writer.write_record(record).unwrap();
        }
        let mut text = writer.into_inner().unwrap();
        if !self.ends_with_newline {
            text.truncate(text.len() - if self.is_crlf { 2 } else { 1 });
        }
        text
    }

    fn settings(&self, path: &Path, max_events: usize) -> Settings {
        let options = CsvOptions { dialect: self.dialect, ..CsvOptions::default() };
        Settings {
            source: SourceConfig::File { path: path.to_owned(), format: Format::Csv(Arc::new(options)) },
            batch: BatchConfig { max_events, max_bytes: 1 << 20, max_age: Duration::from_secs(5) },
            max_payload: 1 << 20,
            is_recorded: false,
            is_replacing: false,
            clock: Arc::new(SystemClock),
            running_time: RunningTime::start(),
        }
    }

    /// What rules see of the events is what was written, and so is what is kept of them.
    fn check(&self, events: &[Event]) {
        let text = self.text();
        assert_eq!(events.len(), self.records.len());
        for (event, record) in events.iter().zip(&self.records) {
            let seen: serde_json::Value = serde_json::from_slice(event.document().unwrap()).unwrap();
            let expected: serde_json::Map<_, _> =
                self.names().into_iter().zip(record.iter().map(|field| field.clone().into())).collect();
            assert_eq!(seen, serde_json::Value::Object(expected));
            let line: usize = event.message_id.rsplit(':').next().unwrap().parse().unwrap();
            let from: usize = text.split_inclusive(|byte| *byte == b'\n').take(line - 1).map(<[u8]>::len).sum();
            let rest = &text[from..];
            assert!(rest.starts_with(&event.payload), "{} is not at its line", event.message_id);
            let behind = &rest[event.payload.len()..];
            assert!(behind.is_empty() || behind.starts_with(b"\n") || behind.starts_with(b"\r\n"));
        }
    }
}

/// The next micro-batch behind a position.
fn next(settings: &Settings, position: Option<&(String, String)>) -> Option<source::Batch> {
    let known = |key: &str| Ok(position.filter(|(known, _)| known == key).map(|(_, position)| position.clone()));
    let opened = block_on(source::open(settings.clone(), known)).unwrap();
    let mut running = opened.start(Stop::default()).unwrap();
    running.batches.blocking_recv().map(Result::unwrap)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_that_is_read_on_after_each_micro_batch(written in written(), max_events in 1..4_usize, compressed: bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.csv");
        let text = written.text();
        std::fs::write(&path, if compressed { gzip(&text) } else { text }).unwrap();
        let settings = written.settings(&path, max_events);
        let (mut events, mut position) = (Vec::new(), None);
        while let Some(batch) = next(&settings, position.as_ref()) {
            events.extend(batch.events);
            position = batch.position;
        }
        written.check(&events);
    }

    #[test]
    fn a_pipe_that_gives_pieces_of_any_size(written in written(), sizes in vec(1..40_usize, 1..8), compressed: bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let text = written.text();
        let bytes = if compressed { gzip(&text) } else { text };
        let settings = written.settings(&path, 3);
        let opened = block_on(source::open(settings, |_| Ok(None))).unwrap();
        let mut pipe = std::fs::File::options().write(true).open(&path).unwrap();
        let mut running = opened.start(Stop::default()).unwrap();
        let writing = std::thread::spawn(move || {
            let (mut rest, mut sizes) = (&bytes[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                pipe.write_all(piece).unwrap();
                rest = behind;
            }
        });
        let mut events = Vec::new();
        while let Some(batch) = running.batches.blocking_recv() {
            events.extend(batch.unwrap().events);
        }
        writing.join().unwrap();
        written.check(&events);
    }
}
