//! Columns the host fills: what only the host knows of an event, and the tables of bronze and quarantine.

use crate::row::{Column, ColumnType};

/// What the host knows of an event and its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostColumn {
    /// When this worker received the event.
    ReceivedTime,
    /// The source's message id.
    MessageId,
    /// When the source took it from its producer.
    PublishTime,
    /// Where it came from: a subscription, or `file:` and the name of the file.
    Subscription,
    /// The payload as text; bytes that are not UTF-8 show as U+FFFD. A view, not the original.
    PayloadText,
    /// The payload's bytes.
    PayloadBytes,
    /// The payload's bytes where the text is not exact, else null.
    PayloadBytesIfInexact,
    /// How many bytes the payload has; null where the row does not hold the whole event.
    PayloadSize,
    /// Attributes as a JSON object.
    Attributes,
    /// The ordering key, if there is one.
    OrderingKey,
    /// How often it was delivered, if the source counts.
    DeliveryAttempt,
    /// The event version it was routed by, if that could be told.
    EventVersion,
    /// `name@version` of the rule that judged it, if one did.
    Rule,
    /// Digest of the component that judged it, if one did.
    RuleDigest,
    /// Where it failed.
    ErrorStage,
    /// The machine-readable kind of failure, for the host's own stages.
    ErrorCode,
    /// Why it failed.
    ErrorReason,
    /// The pipeline's name: pipelines may share a table.
    Pipeline,
}

impl HostColumn {
    /// The type of its values.
    pub const fn kind(self) -> ColumnType {
        match self {
            Self::ReceivedTime | Self::PublishTime => ColumnType::Timestamp,
            Self::PayloadBytes | Self::PayloadBytesIfInexact => ColumnType::Bytes,
            Self::Attributes => ColumnType::Json,
            Self::DeliveryAttempt | Self::PayloadSize => ColumnType::Int64,
            _ => ColumnType::Text,
        }
    }

    /// Whether it can be null.
    pub const fn nullable(self) -> bool {
        matches!(
            self,
            Self::PayloadBytesIfInexact
                | Self::PayloadSize
                | Self::OrderingKey
                | Self::DeliveryAttempt
                | Self::EventVersion
                | Self::Rule
                | Self::RuleDigest
                | Self::ErrorCode
        )
    }

    /// Those that `[silver.host_columns]` may name, by their names there.
    pub const SILVER: [(&'static str, Self); 9] = [
        ("received_time", Self::ReceivedTime),
        ("message_id", Self::MessageId),
        ("publish_time", Self::PublishTime),
        ("subscription", Self::Subscription),
        ("ordering_key", Self::OrderingKey),
        ("delivery_attempt", Self::DeliveryAttempt),
        ("event_version", Self::EventVersion),
        ("rule", Self::Rule),
        ("rule_digest", Self::RuleDigest),
    ];
}

/// Where the value of a table's column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The rule's row, by index.
    Rule(usize),
    /// The host.
    Host(HostColumn),
    /// Nobody: null.
    Null,
}

/// A column of bronze or quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostTableColumn {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub host: HostColumn,
    /// Whether a table without it is refused.
    pub required: bool,
    /// Whether it is NOT NULL in a table that we make.
    pub not_null: bool,
}

impl HostTableColumn {
    const fn new(name: &'static str, host: HostColumn) -> Self {
        Self { name, host, required: false, not_null: false }
    }

    const fn not_null(name: &'static str, host: HostColumn) -> Self {
        Self { name, host, required: false, not_null: true }
    }

    const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The column as a new table has it.
    pub fn created(&self) -> Column {
        Column::new(self.name, self.host.kind(), !self.not_null)
    }
}

const BRONZE: [HostTableColumn; 6] = [
    HostTableColumn::new("subscription_name", HostColumn::Subscription),
    HostTableColumn::new("message_id", HostColumn::MessageId),
    HostTableColumn::new("publish_time", HostColumn::PublishTime),
    HostTableColumn::new("data", HostColumn::PayloadText).required(),
    HostTableColumn::new("attributes", HostColumn::Attributes),
    HostTableColumn::new("raw_bytes", HostColumn::PayloadBytesIfInexact),
];

const QUARANTINE: [HostTableColumn; 16] = [
    HostTableColumn::not_null("raw_payload", HostColumn::PayloadText).required(),
    HostTableColumn::not_null("error_reason", HostColumn::ErrorReason).required(),
    HostTableColumn::not_null("error_stage", HostColumn::ErrorStage).required(),
    HostTableColumn::not_null("received_timestamp", HostColumn::ReceivedTime),
    HostTableColumn::new("source_message_id", HostColumn::MessageId),
    HostTableColumn::new("raw_bytes", HostColumn::PayloadBytes),
    HostTableColumn::new("raw_size", HostColumn::PayloadSize),
    HostTableColumn::new("error_code", HostColumn::ErrorCode),
    HostTableColumn::new("attributes", HostColumn::Attributes),
    HostTableColumn::new("publish_timestamp", HostColumn::PublishTime),
    HostTableColumn::new("ordering_key", HostColumn::OrderingKey),
    HostTableColumn::new("delivery_attempt", HostColumn::DeliveryAttempt),
    HostTableColumn::new("event_version", HostColumn::EventVersion),
    HostTableColumn::new("rule", HostColumn::Rule),
    HostTableColumn::new("rule_digest", HostColumn::RuleDigest),
    HostTableColumn::new("pipeline", HostColumn::Pipeline),
];

const RESOLUTION: [(&str, ColumnType); 2] = [("resolved_at", ColumnType::Timestamp), ("resolved_by", ColumnType::Text)];

/// How many of [`bronze_columns`] and of [`quarantine_columns`] a plain table has: the seed's. The others are written where a
/// table has them.
pub const PLAIN: usize = 5;

/// The columns of a bronze table: those of a BigQuery subscription with metadata, and the original bytes. All but
/// `data` are written where the table has them.
pub const fn bronze_columns() -> &'static [HostTableColumn] {
    &BRONZE
}

/// The columns of a quarantine table: the seed's five, then what a replay needs, written where the table has it.
pub const fn quarantine_columns() -> &'static [HostTableColumn] {
    &QUARANTINE
}

/// The columns of a quarantine table that say by which replay its event was taken out of it, and when. Null when a row
/// is written; a table without them is written to as well, but cannot be replayed.
pub const fn resolution_columns() -> &'static [(&'static str, ColumnType)] {
    &RESOLUTION
}
