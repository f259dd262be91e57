//! Every metric: its name, with the unit at its end, and what it says. The text format adds `_total` to counters, and
//! a full stop to the help.

/// Name and help of a family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name(pub &'static str, pub &'static str);

pub(super) const EVENTS: Name = Name(
    "preflight_events",
    "Events whose rows are durable, by outcome (accepted, ignored, rejected, duplicate, redelivered), stage of a \
     rejection, and event version (other: no rule serves it, none: it cannot be told)",
);
pub(super) const RULE_FAULTS: Name =
    Name("preflight_rule_faults", "Events rejected because their rule misbehaved, by code and event version");
pub(super) const RECOVERED_FAULTS: Name =
    Name("preflight_recovered_faults", "Events whose first fault did not stand when they were judged again alone");
pub(super) const SOURCE_READ: Name = Name(
    "preflight_source_read_bytes",
    "How far the source is read, what an earlier run read included. Absent until reading starts",
);
pub(super) const SOURCE_SIZE: Name =
    Name("preflight_source_size_bytes", "How much there is to read. Absent where that is not known");
pub(super) const PUBLISH_LAG: Name = Name(
    "preflight_publish_lag_seconds",
    "Time since the publish time of the newest event whose rows are durable: it grows while no event comes, too. \
     Absent until there is one",
);

pub(super) const WATERMARK: Name = Name(
    "preflight_watermark_timestamp_seconds",
    "How far event time is, in seconds since 1970: no event before it is waited for. Absent where there is no watermark yet, \
     and of a source with an end",
);
pub(super) const WATERMARK_LAG: Name =
    Name("preflight_watermark_lag_seconds", "How far the watermark is behind the present. Absent where there is none");
pub(super) const WATERMARK_HELD: Name = Name(
    "preflight_watermark_held",
    "1 while the watermark is held, by reason: start (what an earlier process held may come again), backlog (messages come \
     that are older than watermark.backlog), flow_control (as much is held as may be, and what comes is not fresh)",
);
pub(super) const OUT_OF_ORDERNESS_DECLARED: Name = Name(
    "preflight_out_of_orderness_declared_seconds",
    "watermark.out_of_orderness: the watermark stays so far behind the publish times",
);
pub(super) const OUT_OF_ORDERNESS_P999: Name = Name(
    "preflight_out_of_orderness_p999_seconds",
    "Publish time less event time of accepted events of the last 10 to 20 minutes, at its 99.9th percentile. Absent where there \
     were none",
);
pub(super) const OPEN_WINDOWS: Name = Name("preflight_open_windows", "Windows that are open, by aggregate");
pub(super) const OPEN_WINDOWS_LIMIT: Name = Name(
    "preflight_open_windows_limit",
    "Windows that may be open at a time, of all aggregates together: nothing is read while they are",
);
pub(super) const PANES: Name =
    Name("preflight_panes", "Panes whose rows are durable, by aggregate and timing (EARLY, ON_TIME, LATE, RETRACTED)");
pub(super) const LATE_EVENTS: Name = Name(
    "preflight_late_events",
    "Events that were too late for a window, by aggregate, whose rows for the table of late data are durable",
);

pub(super) const MESSAGES_RECEIVED: Name =
    Name("preflight_messages_received", "Messages received of the subscription, those that came again included");
pub(super) const MESSAGES_REDELIVERED: Name = Name(
    "preflight_messages_redelivered",
    "Messages received with a delivery attempt above 1; only a subscription with a dead-letter policy counts attempts",
);
pub(super) const MESSAGES_ACKED: Name =
    Name("preflight_messages_acked", "Messages acknowledged, since all that came of them is durable");
pub(super) const ACKS_UNCONFIRMED: Name = Name(
    "preflight_acks_unconfirmed",
    "Acks that an exactly-once subscription did not confirm: those messages may come again, and are recognised",
);
pub(super) const MESSAGES_NACKED: Name = Name(
    "preflight_messages_nacked",
    "Messages given back: the worker stopped, or what it had taken could not be finished",
);
pub(super) const STREAM_REOPENINGS: Name = Name(
    "preflight_stream_reopenings",
    "Streams that were opened again after a failure which the client does not retry, or since Pub/Sub answers again",
);
pub(super) const OUTSTANDING_MESSAGES: Name =
    Name("preflight_outstanding_messages", "Messages held: received, and neither acknowledged nor given back");
pub(super) const OUTSTANDING_BYTES: Name = Name("preflight_outstanding_bytes", "Size of the messages held");
pub(super) const OLDEST_UNACKED: Name = Name(
    "preflight_oldest_unacked_age_seconds",
    "Time since the publish time of the oldest message held; 0 while none is. What waits in the subscription is not seen here",
);

pub(super) const EVENT_EVALUATION: Name = Name(
    "preflight_event_evaluation_seconds",
    "Time to route and judge one event and to encode its rows. One event in 64 is timed, each micro-batch's first \
     among them",
);
pub(super) const BATCH_EVALUATION: Name = Name(
    "preflight_batch_evaluation_seconds",
    "Time from handing a micro-batch to the judging threads until its last event is judged",
);
pub(super) const BATCH_EVENTS: Name = Name("preflight_batch_events", "Events of a micro-batch");
pub(super) const BATCH_AGE: Name =
    Name("preflight_batch_age_seconds", "Age of a micro-batch's oldest event when it is handed to the judging threads");
pub(super) const BATCHES_IN_JUDGING: Name =
    Name("preflight_batches_in_judging", "Micro-batches handed to the judging threads and not judged yet");
pub(super) const COMMITS_UNDELIVERED: Name =
    Name("preflight_commits_undelivered", "Commits of this run in the ledger that wait for delivery");
pub(super) const LEDGER_COMMIT: Name =
    Name("preflight_ledger_commit_seconds", "Time to commit a micro-batch to the ledger, retries included");
pub(super) const APPEND: Name = Name(
    "preflight_append_seconds",
    "Time of one send of a commit's rows to all their tables, whether it worked or not",
);
pub(super) const ROWS: Name = Name(
    "preflight_rows",
    "Rows that the warehouse confirmed, by tier; those that an earlier run had left in the ledger included",
);
pub(super) const RETRIES: Name = Name(
    "preflight_retries",
    "Tries after a failure that may pass, by what failed: append, another call to the warehouse, a call to the \
     ledger, opening the source",
);

pub(super) const RELOADS: Name = Name(
    "preflight_reloads",
    "New revisions of the rule store by result: loaded, or refused (tries of the same count once)",
);
pub(super) const ACTIVE_REVISION: Name =
    Name("preflight_active_revision", "The revision served; 0 with components named in the pipeline file");
pub(super) const REFUSED_REVISION: Name =
    Name("preflight_refused_revision", "The newer revision that could not be taken; 0 if there is none");
pub(super) const COMPARED_PAIRS: Name = Name(
    "preflight_compared_pairs",
    "Events that two components both judged, by why they are compared: shadow, canary or guard",
);
pub(super) const COMPARISONS_SKIPPED: Name =
    Name("preflight_comparisons_skipped", "Events that were not compared, since the comparing side could not keep up");
pub(super) const DIFFERENCES: Name =
    Name("preflight_differences", "Differences between the verdicts of two components, by kind");
pub(super) const GUARD_TRIPS: Name = Name("preflight_guard_trips", "Promotions and canaries that a guard took back");
