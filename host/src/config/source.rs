//! Where events come from, and how they stand there.

use super::PubsubConfig;
use crate::record::{self, Dialect};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// Where events come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceConfig {
    /// Files, read to their end.
    File {
        /// The path of one, or a pattern that they match.
        path: PathBuf,
        /// How events stand in them.
        format: Format,
    },
    /// Standard input, read to its end.
    Stdin {
        /// How events stand in it.
        format: Format,
    },
    /// A Pub/Sub subscription, pulled until the worker is asked to stop.
    Pubsub(PubsubConfig),
}

impl SourceConfig {
    /// Whether it has an end.
    pub const fn is_bounded(&self) -> bool {
        !matches!(self, Self::Pubsub(_))
    }

    /// How events stand in it. In a message stands a payload as it is.
    pub const fn format(&self) -> &Format {
        match self {
            Self::File { format, .. } | Self::Stdin { format } => format,
            Self::Pubsub(_) => &Format::Lines,
        }
    }

    /// What rows call it: `file:` and the name of the file, or the end of the pattern; `stdin`; or the full name of the
    /// subscription.
    pub fn name(&self) -> String {
        match self {
            Self::File { path, .. } => {
                format!(
                    "file:{}",
                    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
                )
            }
            Self::Stdin { .. } => "stdin".to_owned(),
            Self::Pubsub(config) => config.subscription.clone(),
        }
    }
}

/// How events stand in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A payload per line, bytes as they are.
    Lines,
    /// NDJSON with `data` or `data_base64`, `attributes`, `message_id`, `publish_time`, `ordering_key`.
    Envelope,
    /// Records of delimited fields, with a header or with columns that are named here.
    Csv(Arc<CsvOptions>),
    /// One JSON array a file: each of its values is a payload, bytes as they are.
    JsonArray,
}

/// How records stand in a CSV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// How fields are divided: ASCII.
    pub dialect: Dialect,
    /// Whether the first record of a file names its columns.
    pub header: bool,
    /// The columns of every file, in their order: at least one, none empty, none twice. There where no header is.
    pub columns: Option<Vec<String>>,
}

impl Default for CsvOptions {
    /// As in RFC 4180, with a header.
    fn default() -> Self {
        Self { dialect: Dialect::default(), header: true, columns: None }
    }
}

impl Format {
    /// The names of the formats.
    pub const NAMES: [&str; 4] = ["lines", "envelope", "csv", "json-array"];

    /// The header of every file, without a newline behind it; none where each file says it itself, or has none.
    pub fn header(&self) -> Option<String> {
        let Self::Csv(options) = self else { return None };
        options.columns.as_ref().map(|columns| record::header(columns, options.dialect))
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "lines" => Ok(Self::Lines),
            "envelope" => Ok(Self::Envelope),
            "csv" => Ok(Self::Csv(Arc::default())),
            "json-array" => Ok(Self::JsonArray),
            other => {
                let names = Self::NAMES.map(|name| format!("\"{name}\""));
                let (last, names) = names.split_last().expect("there are formats");
                Err(format!("{other:?} is not a format: use {} or {last}", names.join(", ")))
            }
        }
    }
}
