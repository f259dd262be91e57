//! The whole of it against a model that is slow and obviously right: random micro-batches with duplicates and redeliveries,
//! some in flight while others are committed, under rules that change, with the worker killed between any two steps.

use preflight::config::{Config, DedupBy, DedupConfig, Layers, OnConflict};
use preflight::event::Event;
use preflight::ledger::{Ledger, Seq};
use preflight::pipeline::dedup::Dedup;
use preflight::pipeline::deliver::Delivery;
use preflight::pipeline::evaluate::{Context, Evaluated, Evaluators};
use preflight::pipeline::prepare;
use preflight::pipeline::retry::Patience;
use preflight::source::{Batch, Leases};
use preflight::telemetry::status::Board;
use preflight::telemetry::tally::Tally;
use preflight::time::{Clock, SystemClock};
use preflight::warehouse;
use preflight_tests::handmade::Toy;
use preflight_tests::{Pipeline, events, tables};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

const FILE: &str = r#"
name = "test"
[source.file]
path = "input.ndjson"
[rules]
event_version = { default = "1" }
[rules.components]
"1" = "toy-0.wasm"
[warehouse.sqlite]
path = "warehouse.db"
[bronze]
table = "bronze"
create = "if_needed"
[silver]
table = "silver"
create = "if_needed"
[silver.host_columns]
message_id = "message_id"
[quarantine]
table = "quarantine"
create = "if_needed"
"#;

/// What a rule does with a payload: it rejects or ignores it, or makes a row of `n`.
#[derive(Clone, Copy)]
struct Rule {
    rejects: &'static str,
    ignores: &'static str,
    n: i64,
}

/// The second makes the first's rows, the third others; each rejects something else.
const RULES: [Rule; 3] = [
    Rule { rejects: "r", ignores: "i", n: 1 },
    Rule { rejects: "a", ignores: "i", n: 1 },
    Rule { rejects: "i", ignores: "r", n: 2 },
];
const PAYLOADS: [&str; 5] = ["a", "b", "c", "r", "i"];

/// A message: what the producer sent, whatever its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Message {
    number: u32,
    payload: usize,
    /// Key attribute; 0 for none.
    key: u8,
}

impl Message {
    fn id(self) -> String {
        format!("m{}", self.number)
    }

    fn event(self) -> Event {
        let mut event = events::event(&self.id(), PAYLOADS[self.payload]);
        if self.key > 0 {
            event.attributes.push(("key".into(), self.key.to_string()));
        }
        event
    }

    /// What the producer says that makes two events the same content.
    fn content(self) -> (usize, u8) {
        (self.payload, self.key)
    }
}

/// What becomes of an event by its rule alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Accept(i64),
    Reject,
    Ignore,
}

impl Rule {
    fn judge(self, message: Message) -> Verdict {
        let payload = PAYLOADS[message.payload];
        match (self.rejects.contains(payload), self.ignores.contains(payload)) {
            (true, _) => Verdict::Reject,
            (_, true) => Verdict::Ignore,
            _ => Verdict::Accept(self.n),
        }
    }
}

/// The model: everything in the order of the commits.
#[derive(Default)]
struct Model {
    seen: BTreeSet<u32>,
    claims: BTreeMap<String, ((usize, u8), i64)>,
    /// Keys of what got no row, with its content, the rule, and whether it was ignored.
    repeats: BTreeSet<(String, (usize, u8), usize, bool)>,
    bronze: Vec<String>,
    silver: Vec<String>,
    quarantine: Vec<(String, &'static str)>,
}

/// Accepted, rejected, ignored, duplicates, redelivered.
type Counts = [u64; 5];

impl Model {
    fn commit(&mut self, by: &DedupBy, on_conflict: OnConflict, rule: usize, messages: &[Message]) -> Counts {
        let mut counts = [0; 5];
        for message in messages {
            counts[self.one(by, on_conflict, rule, *message)] += 1;
        }
        counts
    }

    fn one(&mut self, by: &DedupBy, on_conflict: OnConflict, rule: usize, message: Message) -> usize {
        let [accepted, rejected, ignored, duplicate, redelivered] = [0, 1, 2, 3, 4];
        if !self.seen.insert(message.number) {
            return redelivered;
        }
        self.bronze.push(message.id());
        let verdict = RULES[rule].judge(message);
        let key = match by {
            DedupBy::Payload => Some(format!("payload {}", message.payload)),
            DedupBy::MessageId => Some(message.id()),
            DedupBy::Attribute(_) => (message.key > 0).then(|| format!("key {}", message.key)),
            DedupBy::Columns(_) => match verdict {
                Verdict::Accept(n) => Some(format!("n {n}")),
                Verdict::Reject | Verdict::Ignore => None,
            },
            DedupBy::Field(_) => unreachable!("toys take no JSON"),
        };
        // A payload that is the key is all that is compared.
        let content = if *by == DedupBy::Payload { (message.payload, 0) } else { message.content() };
        let mut stage = "TOY";
        if let Some(key) = key {
            if let Some((first, n)) = self.claims.get(&key) {
                if *first == content || verdict == Verdict::Accept(*n) {
                    return duplicate;
                }
                if let Verdict::Accept(_) = verdict {
                    if on_conflict == OnConflict::Drop {
                        return duplicate;
                    }
                    stage = "DUPLICATE_CONFLICT";
                }
            } else if let Verdict::Accept(n) = verdict {
                self.claims.insert(key.clone(), (content, n));
            }
            let has_row = matches!(verdict, Verdict::Accept(_)) && stage == "TOY";
            if !has_row && !self.repeats.insert((key, content, rule, verdict == Verdict::Ignore)) {
                return duplicate;
            }
        }
        match verdict {
            Verdict::Accept(_) if stage == "TOY" => {
                self.silver.push(message.id());
                accepted
            }
            Verdict::Ignore => ignored,
            Verdict::Accept(_) | Verdict::Reject => {
                self.quarantine.push((message.id(), stage));
                rejected
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A micro-batch comes: new messages (payload, key), and deliveries of earlier ones (by how far back).
    Submit { rule: usize, new: Vec<(usize, u8)>, again: Vec<usize> },
    /// The first in flight is committed.
    Commit,
    /// The first commit is delivered, and acknowledged.
    Deliver,
    /// The worker is killed and started again.
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let new = prop::collection::vec((0..PAYLOADS.len(), 0_u8..4), 0..8);
    let again = prop::collection::vec(0_usize..20, 0..4);
    let submit = (0..RULES.len(), new, again).prop_map(|(rule, new, again)| Step::Submit { rule, new, again });
    let step = prop_oneof![6 => submit, 5 => Just(Step::Commit), 3 => Just(Step::Deliver), 1 => Just(Step::Kill)];
    prop::collection::vec(step, 1..30)
}

/// A worker that is driven step by step.
struct Worker {
    dedup: Dedup,
    delivery: Delivery,
    in_flight: VecDeque<(usize, Vec<Message>, Evaluated)>,
    undelivered: VecDeque<Seq>,
}

/// What outlives a worker.
struct World {
    pipeline: Pipeline,
    config: Config,
    contexts: Vec<Context>,
    evaluators: Evaluators,
    board: Board,
    dedup: DedupConfig,
    /// What was sent, in its order.
    sent: Vec<Message>,
    /// What a killed worker had not committed: it is delivered again.
    lost: Vec<Message>,
    model: Model,
}

impl World {
    async fn new(by: DedupBy, on_conflict: OnConflict) -> Self {
        let pipeline = Pipeline::with_file(FILE, "").warm();
        for (number, rule) in RULES.iter().enumerate() {
            let version = ["1.0.0", "1.0.1", "1.0.2"][number];
            let toy = Toy { version, n: rule.n, rejects: rule.rejects, ignores: rule.ignores, ..Toy::default() };
            std::fs::write(pipeline.directory().join(format!("toy-{number}.wasm")), toy.component()).unwrap();
        }
        let dedup = DedupConfig { by, horizon: Duration::from_hours(1), on_conflict, expected_rate: None };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let board = Board::new(["test"], &clock);
        let (mut contexts, mut first) = (Vec::new(), None);
        for number in 0..RULES.len() {
            let rule = pipeline.directory().join(format!("toy-{number}.wasm"));
            let settings = [pipeline.settings.clone(), vec![format!("rules.components.\"1\"={}", rule.display())]];
            let layers = Layers::load(&pipeline.file(), &[""; 0], &settings.concat()).unwrap();
            let mut config = Config::from_layers(&layers).unwrap();
            config.dedup = Some(dedup.clone());
            let prepared = prepare(&config).unwrap();
            let warehouse = warehouse::open(&config.warehouse).await.unwrap();
            for table in prepared.new_tables {
                warehouse.create_table(table).await.unwrap();
            }
            contexts.push(Context { rules: prepared.rules, plan: Arc::new(prepared.plan), pairs: [].into() });
            first.get_or_insert((config, prepared.sandbox));
        }
        let (config, sandbox) = first.unwrap();
        let metrics = &board.pipelines()[0].0;
        let evaluators =
            Evaluators::start(&sandbox, &config.limits, config.rules.isolation, config.threads, None, metrics).unwrap();
        let (sent, lost, model) = (Vec::new(), Vec::new(), Model::default());
        Self { pipeline, config, contexts, evaluators, board, dedup, sent, lost, model }
    }

    /// A worker, as at every start.
    async fn start(&self) -> Worker {
        let warehouse = warehouse::open(&self.config.warehouse).await.unwrap();
        let dedup = Dedup::new(true, Some(self.dedup.clone()));
        let mut ledger = Ledger::open(&self.config.ledger, "test", warehouse.identity()).unwrap();
        ledger.keep_keys(dedup.retention()).unwrap();
        let (metrics, status) = &self.board.pipelines()[0];
        let patience = Patience::new(Duration::ZERO, metrics, status);
        let delivery = Delivery::new(ledger, warehouse, Arc::clone(&self.contexts[0].plan), patience, metrics.clone());
        delivery.resume().await.unwrap();
        Worker { dedup, delivery, in_flight: VecDeque::new(), undelivered: VecDeque::new() }
    }
}

/// The rows in the tables are those of the model, in its order.
fn expect_model(world: &World) {
    let column = |table: &str, name: &str| tables::column(&world.pipeline.database(), table, name);
    assert_eq!(column("bronze", "message_id"), world.model.bronze);
    assert_eq!(column("silver", "message_id"), world.model.silver);
    let quarantine: Vec<(String, String)> =
        column("quarantine", "source_message_id").into_iter().zip(column("quarantine", "error_stage")).collect();
    let expected: Vec<(String, String)> =
        world.model.quarantine.iter().map(|(id, stage)| (id.clone(), (*stage).to_owned())).collect();
    assert_eq!(quarantine, expected);
}

fn counts(tally: &Tally) -> Counts {
    [tally.accepted(), tally.quarantined(), tally.ignored(), tally.duplicates(), tally.redelivered]
}

impl Worker {
    async fn submit(&mut self, world: &World, rule: usize, messages: Vec<Message>) {
        let events = messages.iter().map(|message| message.event()).collect();
        let batch = Batch { events, position: None, leases: Leases::default() };
        let admitted = self.dedup.admit(batch, &self.delivery).await.unwrap();
        let judged = world.evaluators.submit(admitted, &world.contexts[rule]).await.unwrap();
        self.in_flight.push_back((rule, messages, judged));
    }

    async fn deliver(&mut self) {
        let Some(seq) = self.undelivered.pop_front() else { return };
        self.delivery.deliver(seq).await.unwrap();
        self.dedup.acking(seq).done();
    }

    /// The property: what is settled counts as the model counts it.
    async fn commit(&mut self, world: &mut World) {
        let Some((rule, messages, judged)) = self.in_flight.pop_front() else { return };
        let settled = self.dedup.settle(judged, &self.delivery).await.unwrap();
        let DedupConfig { by, on_conflict, .. } = world.dedup.clone();
        let expected = world.model.commit(&by, on_conflict, rule, &messages);
        assert_eq!(counts(&settled.tally), expected, "{messages:?} by rule {rule}");
        assert_eq!(settled.tally.read, messages.len() as u64);
        for part in settled.parts.iter().filter(|part| !part.rows.is_empty()) {
            self.delivery.ensure_stream(part.tier).await.unwrap();
        }
        let (parts, originals, seen) = (settled.parts, settled.originals, settled.seen);
        let call = move |ledger: &mut Ledger| ledger.commit(&parts, &originals, None, &seen);
        self.undelivered.push_back(self.delivery.ledger.call(call).await.unwrap());
    }
}

async fn play(by: DedupBy, on_conflict: OnConflict, steps: Vec<Step>) {
    let mut world = World::new(by, on_conflict).await;
    let mut worker = world.start().await;
    for step in steps {
        match step {
            Step::Submit { rule, new, again } => {
                let mut messages = std::mem::take(&mut world.lost);
                messages.extend(again.iter().filter_map(|back| world.sent.iter().rev().nth(*back).copied()));
                for (payload, key) in new {
                    let message = Message { number: u32::try_from(world.sent.len()).unwrap(), payload, key };
                    world.sent.push(message);
                    messages.push(message);
                }
                if worker.in_flight.len() == 3 {
                    worker.commit(&mut world).await;
                }
                worker.submit(&world, rule, messages).await;
            }
            Step::Commit => worker.commit(&mut world).await,
            Step::Deliver => worker.deliver().await,
            Step::Kill => {
                world.lost.extend(worker.in_flight.iter().flat_map(|(_, messages, _)| messages.iter().copied()));
                drop(worker);
                worker = world.start().await;
                expect_model(&world);
            }
        }
    }
    // Everything comes once more in the end, the lost ones for the first time.
    let all = world.sent.clone();
    worker.submit(&world, 0, all).await;
    while !worker.in_flight.is_empty() {
        worker.commit(&mut world).await;
    }
    while !worker.undelivered.is_empty() {
        worker.deliver().await;
    }
    expect_model(&world);
    let everything: BTreeSet<u32> = world.sent.iter().map(|message| message.number).collect();
    assert_eq!(world.model.seen, everything);
    assert_eq!(world.model.bronze.len(), everything.len(), "every message is in the raw tier once");
}

fn bys() -> impl Strategy<Value = DedupBy> {
    prop_oneof![
        Just(DedupBy::Payload),
        Just(DedupBy::MessageId),
        Just(DedupBy::Attribute("key".into())),
        Just(DedupBy::Columns(vec!["n".into()])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_event_ends_where_the_model_says(
        by in bys(),
        on_conflict in prop_oneof![Just(OnConflict::Quarantine), Just(OnConflict::Drop)],
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(by, on_conflict, steps));
    }
}
