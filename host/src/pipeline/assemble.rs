//! From outcomes to rows: every check the table could make is made here, before a row is promised.

use super::facts::Fate;
use super::plan::{HostTable, Plan};
use super::takes::{sink, table_takes};
use crate::digest::Digest;
use crate::event::{Event, KEPT};
use crate::reject_files::record;
use crate::row::{Row, ValueRef};
use crate::rules::Rule;
use crate::rules::manifest::NAME;
use crate::telemetry::tally::{CountedVersion, Tally};
use crate::verdict::{Rejection, Verdict};
use crate::warehouse::{Encoding, HostColumn, RowSet, Source, Tier};
use std::borrow::Cow;

/// Turns the outcomes of one part of a micro-batch into rows.
pub struct Assembler<'a> {
    plan: &'a Plan,
    /// The rows by tier, in the order of [`Tier::JUDGED`].
    pub rows: [RowSet; Tier::JUDGED.len()],
    /// The counts.
    pub tally: Tally,
}

/// An event with what was found out about it.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Index in the micro-batch.
    pub index: u32,
    /// The event.
    pub event: &'a Event,
    /// Its event version, if that could be told.
    pub version: Option<&'a str>,
    /// Label and digest text of the rule that judged it, if one did.
    pub rule: Option<(&'a str, &'a str)>,
}

/// What host columns draw on.
struct Context<'a> {
    judged: Judged<'a>,
    plan: &'a Plan,
    text: Cow<'a, str>,
    bytes: &'a [u8],
    /// Size of the payload, where the row holds the whole event or tells by this that it does not.
    size: Option<usize>,
    attributes: &'a str,
    rejection: Option<&'a Rejection>,
}

impl<'a> Assembler<'a> {
    /// An assembler without rows.
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, rows: Default::default(), tally: Tally::default() }
    }

    /// Adds an event with its outcome. Returns what became of it.
    pub fn add(&mut self, judged: Judged<'_>, rule: Option<&Rule>, outcome: Result<Verdict, Rejection>) -> Fate {
        self.tally.read(judged.event.publish_time);
        let version = CountedVersion::new(judged.version, rule.is_some());
        let attributes = judged.event.attributes_json();
        if let Some(bronze) = &self.plan.bronze {
            self.bronze(judged, bronze, &attributes);
        }
        let rejection = match (outcome, rule) {
            (Ok(Verdict::Accept(row)), Some(rule)) => match self.silver(judged, &rule.digest, &row, &attributes) {
                Ok(counted) => {
                    self.tally.of(version).accepted += 1;
                    return Fate::Accepted(counted);
                }
                Err(rejection) => rejection,
            },
            (Ok(Verdict::Accept(_)), None) => unreachable!("a row comes from a rule"),
            (Ok(Verdict::Ignore(_)), _) => {
                self.tally.of(version).ignored += 1;
                return Fate::Ignored;
            }
            (Ok(Verdict::Reject(rejection)) | Err(rejection), _) => rejection,
        };
        self.tally.of(version).reject(&rejection);
        self.quarantine(judged, &attributes, &rejection);
        Fate::rejected(&rejection)
    }

    /// Adds an event that is known to be a duplicate.
    pub fn add_duplicate(&mut self, judged: Judged<'_>, version: CountedVersion<'_>) -> Fate {
        self.tally.read(judged.event.publish_time);
        if let Some(bronze) = &self.plan.bronze {
            self.bronze(judged, bronze, &judged.event.attributes_json());
        }
        self.tally.of(version).duplicates += 1;
        Fate::Duplicate
    }

    /// Adds the raw event. SQLite takes it however large it is. For BigQuery it is cut where it does not fit a request: it is
    /// whole where a BigQuery subscription writes it.
    fn bronze(&mut self, judged: Judged<'_>, bronze: &HostTable, attributes: &str) {
        self.tally.bronze += 1;
        let limit = match bronze.layout.encoding {
            Encoding::Cells | Encoding::Lines => usize::MAX,
            Encoding::Proto(_) => self.plan.max_row,
        };
        let context = self.context(judged, attributes, None);
        let rows = &mut self.rows[Tier::Bronze.judged()];
        let Err(size) = host_row(rows, judged.index, limit, bronze, &context) else { return };
        let payload = &judged.event.payload;
        let kept = &payload[..payload.len().min(KEPT)];
        let (message_id, digest) = (&judged.event.message_id, Digest::of(payload));
        tracing::warn!(
            message_id,
            "bronze keeps {} of {} payload bytes ({digest}) and no attributes: the row would have {size} bytes, the limit is {limit}",
            kept.len(),
            payload.len()
        );
        let context = Context { text: String::from_utf8_lossy(kept), bytes: kept, ..self.context(judged, "{}", None) };
        host_row(&mut self.rows[Tier::Bronze.judged()], judged.index, usize::MAX, bronze, &context).ok();
    }

    /// Adds a rejected event wherever such go.
    pub fn quarantine(&mut self, judged: Judged<'_>, attributes: &str, rejection: &Rejection) {
        let plan = self.plan;
        if let Some(layout) = &plan.rejects {
            let record = ValueRef::Bytes(record(judged.event));
            let rows = &mut self.rows[Tier::Rejects.judged()];
            rows.push(judged.index, usize::MAX, |bytes| layout.encode(bytes, [record])).ok();
        }
        if let Some(table) = &plan.quarantine {
            self.quarantine_row(judged, table, attributes, rejection);
        }
    }

    fn quarantine_row(&mut self, judged: Judged<'_>, table: &HostTable, attributes: &str, rejection: &Rejection) {
        let plan = self.plan;
        let context = self.context(judged, attributes, Some(rejection));
        let rows = &mut self.rows[Tier::Quarantine.judged()];
        let Err(size) = host_row(rows, judged.index, plan.max_row, table, &context) else { return };
        let payload = &judged.event.payload;
        let kept = &payload[..payload.len().min(KEPT)];
        let limit = format!("the row would have {size} bytes, the limit is {}", plan.max_row);
        if table.columns.contains(&HostColumn::PayloadBytes) {
            // Where the table has the bytes the text is only a view, and is cut first.
            let reason = format!("{} [{limit}: raw_payload is cut, raw_bytes is whole]", rejection.reason);
            let cut = Rejection { reason, ..rejection.clone() };
            let context =
                Context { text: String::from_utf8_lossy(kept), ..self.context(judged, attributes, Some(&cut)) };
            let rows = &mut self.rows[Tier::Quarantine.judged()];
            if host_row(rows, judged.index, plan.max_row, table, &context).is_ok() {
                return;
            }
        }
        let reason = format!(
            "{} [{limit}: kept are the first {} of {} payload bytes, whose digest is {}, and no attributes]",
            rejection.reason,
            kept.len(),
            payload.len(),
            Digest::of(payload),
        );
        let clipped = Rejection { reason, ..rejection.clone() };
        // A whole payload without its attributes is no whole event, and would pass for one by its size.
        let bare = kept.len() == payload.len() && judged.event.attributes_json() != "{}";
        // A longer event version is no rule's.
        let judged = Judged { version: judged.version.filter(|version| version.len() <= NAME), ..judged };
        let context = self.context(judged, "{}", Some(&clipped));
        let size = context.size.filter(|_| !bare);
        let context = Context { text: String::from_utf8_lossy(kept), bytes: kept, size, ..context };
        // Nothing in this row grows with the input any more, so it has no limit.
        host_row(&mut self.rows[Tier::Quarantine.judged()], judged.index, usize::MAX, table, &context).ok();
    }

    fn context<'c>(&self, judged: Judged<'c>, attributes: &'c str, rejection: Option<&'c Rejection>) -> Context<'c>
    where
        'a: 'c,
    {
        let payload = &judged.event.payload;
        Context {
            judged,
            plan: self.plan,
            text: String::from_utf8_lossy(payload),
            bytes: payload,
            // Of what the source refused it kept only a part, or what is no payload.
            size: judged.event.refused().is_none().then_some(payload.len()),
            attributes,
            rejection,
        }
    }

    /// Adds the row of an accepted event. Returns what its value is counted under, where rows are counted by one.
    fn silver(
        &mut self,
        judged: Judged<'_>,
        digest: &Digest,
        row: &Row,
        attributes: &str,
    ) -> Result<Option<Box<str>>, Rejection> {
        let silver = &self.plan.silver;
        let sources = &silver.by_rule[digest];
        let context = Context {
            judged,
            plan: self.plan,
            text: Cow::Borrowed(""),
            bytes: &[],
            size: None,
            attributes,
            rejection: None,
        };
        let value = |index: usize| match sources[index] {
            Source::Rule(column) => ValueRef::from(&row[column]),
            Source::Host(column) => context.value(column),
            Source::Null => ValueRef::Null,
        };
        table_takes(silver, value, judged.event.received_time)?;
        let rows = &mut self.rows[Tier::Silver.judged()];
        rows.push(judged.index, self.plan.max_row, |bytes| silver.layout.encode(bytes, (0..sources.len()).map(value)))
            .map_err(|size| {
                sink("row_too_large", format!("the row has {size} bytes, the limit is {}", self.plan.max_row))
            })?;
        Ok(silver.count_by.map(|index| self.tally.silver_by.count(value(index))))
    }
}

impl Context<'_> {
    fn value(&self, column: HostColumn) -> ValueRef<'_> {
        let event = self.judged.event;
        match column {
            HostColumn::ReceivedTime => ValueRef::Timestamp(event.received_time),
            HostColumn::PublishTime => ValueRef::Timestamp(event.publish_time),
            HostColumn::MessageId => ValueRef::Text(&event.message_id),
            HostColumn::Subscription => ValueRef::Text(&self.plan.source_name),
            HostColumn::PayloadText => ValueRef::Text(&self.text),
            HostColumn::PayloadBytes => ValueRef::Bytes(self.bytes),
            HostColumn::PayloadBytesIfInexact => match self.text {
                Cow::Borrowed(_) => ValueRef::Null,
                Cow::Owned(_) => ValueRef::Bytes(self.bytes),
            },
            HostColumn::PayloadSize => {
                let size = self.size.and_then(|size| i64::try_from(size).ok());
                size.map_or(ValueRef::Null, ValueRef::Int64)
            }
            HostColumn::Attributes => ValueRef::Json(self.attributes),
            HostColumn::OrderingKey => or_null(event.ordering_key.as_deref()),
            HostColumn::DeliveryAttempt => {
                event.delivery_attempt.map_or(ValueRef::Null, |n| ValueRef::Int64(i64::from(n)))
            }
            HostColumn::EventVersion => or_null(self.judged.version),
            HostColumn::Rule => or_null(self.judged.rule.map(|(label, _)| label)),
            HostColumn::RuleDigest => or_null(self.judged.rule.map(|(_, digest)| digest)),
            HostColumn::ErrorStage => or_null(self.rejection.map(|r| r.stage.as_ref())),
            HostColumn::ErrorCode => or_null(self.rejection.and_then(|r| r.code.as_deref())),
            HostColumn::ErrorReason => or_null(self.rejection.map(|r| r.reason.as_str())),
            HostColumn::Pipeline => ValueRef::Text(&self.plan.pipeline),
        }
    }
}

fn or_null(text: Option<&str>) -> ValueRef<'_> {
    text.map_or(ValueRef::Null, ValueRef::Text)
}

fn host_row(
    rows: &mut RowSet,
    index: u32,
    limit: usize,
    table: &HostTable,
    context: &Context<'_>,
) -> Result<(), usize> {
    rows.push(index, limit, |bytes| {
        table.layout.encode(bytes, table.columns.iter().map(|column| context.value(*column)));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Form;
    use crate::pipeline::plan::Silver;
    use crate::row::ColumnType;
    use crate::warehouse::Layout;
    use bytes::Bytes;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[test]
    fn a_raw_event_that_fits_no_request_is_cut_for_bigquery_only() {
        let bronze = |encoding| HostTable {
            layout: Arc::new(Layout { table: "t".into(), columns: vec!["data".into()], encoding, upsert: None }),
            columns: vec![HostColumn::PayloadText],
        };
        let plan = |encoding| Plan {
            bronze: Some(bronze(encoding)),
            quarantine: None,
            rejects: None,
            silver: Silver {
                layout: bronze(Encoding::Cells).layout,
                message_id: None,
                partition: None,
                count_by: None,
                limits: vec![],
                by_rule: BTreeMap::new(),
            },
            row_keys: BTreeMap::new(),
            windows: None,
            max_row: 2 * KEPT,
            pipeline: String::new(),
            source_name: String::new(),
        };
        let size_of = |encoding, payload: usize| {
            let event = Event {
                payload: Bytes::from(vec![b'x'; payload]),
                attributes: vec![],
                message_id: String::new(),
                publish_time: 0,
                received_time: 0,
                ordering_key: None,
                delivery_attempt: None,
                form: Form::Whole,
            };
            let plan = plan(encoding);
            let mut assembler = Assembler::new(&plan);
            let judged = Judged { index: 0, event: &event, version: None, rule: None };
            assembler.add(judged, None, Ok(Verdict::Ignore("not of interest".into())));
            assembler.rows[Tier::Bronze.judged()].row(0).len()
        };
        let proto = || Encoding::Proto(vec![ColumnType::Text]);
        assert!(size_of(proto(), KEPT) > KEPT && size_of(proto(), 2 * KEPT) < KEPT + 10);
        assert!(size_of(Encoding::Cells, 2 * KEPT) > 2 * KEPT);
    }
}
