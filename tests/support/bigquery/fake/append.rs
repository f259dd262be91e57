//! One `AppendRows` call: requests come in, each has one answer, in their order.

use super::api::append_rows_request::{MissingValueInterpretation, Rows};
use super::api::append_rows_response::{AppendResult, Response};
use super::api::{AppendRowsRequest, AppendRowsResponse, RowError, row_error};
use super::decode::Decoder;
use super::faults::{Call, Due, Ending, Fault, RowTest};
use super::refusal::Refusal;
use super::state::{Append, State};
use super::table_of;
use prost::Message as _;
use prost_types::DescriptorProto;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tokio::sync::watch;
use tonic::Code;

/// A request may have this many bytes.
pub const MAX_REQUEST: usize = 10_485_760;

/// What the call does next.
pub(super) enum Step {
    Answer(AppendRowsResponse),
    AnswerAndEnd(AppendRowsResponse, Ending),
    /// Answers once the rule is lifted.
    Hold(AppendRowsResponse, watch::Receiver<bool>),
    End(Ending),
}

/// What was settled by the first request of a call.
struct Settled {
    stream: String,
    descriptor: DescriptorProto,
    /// The version of the schema that the writer knows.
    told: u64,
}

/// A call that is going on.
pub(super) struct Line {
    /// The value of `x-goog-request-params`, unescaped.
    routing: Option<String>,
    settled: Option<Settled>,
    /// Whether a request was answered with an error.
    failed: bool,
}

/// A request that could be read.
struct Taken {
    stream: String,
    offset: Option<u64>,
    rows: Vec<Vec<u8>>,
    interpretations: HashMap<String, i32>,
    default_interpretation: i32,
}

impl Line {
    pub(super) fn new(routing: Option<String>) -> Self {
        Self { routing, settled: None, failed: false }
    }

    /// Takes the next request.
    pub(super) fn next(&mut self, request: AppendRowsRequest, state: &mut State) -> Step {
        let bytes = request.encoded_len();
        let taken = match self.take(request) {
            Ok(taken) => taken,
            Err(refusal) => return Step::End(Ending::Error(refusal)),
        };
        let mut log = Append {
            stream: taken.stream.clone(),
            offset: taken.offset,
            rows: taken.rows.len(),
            bytes,
            digest: digest(&taken.rows),
            written: false,
            answer: None,
        };
        let step = if self.failed && state.aborts_behind_errors {
            let message = "Processing aborted because of prior failures.";
            Step::Answer(Refusal::new(Code::Aborted, message).answer(&log.stream))
        } else {
            self.answer(taken, state, &mut log.written)
        };
        if let Step::Answer(answer) | Step::AnswerAndEnd(answer, _) | Step::Hold(answer, _) = &step {
            log.answer = Some(match &answer.response {
                Some(Response::Error(status)) => Code::from(status.code),
                _ => Code::Ok,
            });
            self.failed |= log.answer != Some(Code::Ok);
        }
        state.appends.push(log);
        step
    }

    /// What every request must have. What lacks it ends the call.
    fn take(&mut self, request: AppendRowsRequest) -> Result<Taken, Refusal> {
        let invalid = |why: &str| Err(Refusal::new(Code::InvalidArgument, why));
        let size = request.encoded_len();
        if size > MAX_REQUEST {
            return invalid(&format!("AppendRows request too large: {size} limit {MAX_REQUEST}"));
        }
        let Some(Rows::ProtoRows(data)) = request.rows else { return invalid("Rows must be specified.") };
        let descriptor = data.writer_schema.and_then(|schema| schema.proto_descriptor);
        match (&self.settled, descriptor) {
            (None, None) => return invalid("The first request of a call must have a schema."),
            (None, Some(descriptor)) => {
                let stream = request.write_stream.clone();
                let expected = format!("write_stream={stream}");
                if stream.is_empty() {
                    return invalid("The first request of a call must name its stream.");
                }
                if self.routing.as_deref() != Some(&expected) {
                    let routing = self.routing.as_deref().unwrap_or_default();
                    return invalid(&format!("x-goog-request-params is {routing:?} and not {expected:?}"));
                }
                self.settled = Some(Settled { stream, descriptor, told: u64::MAX });
            }
            (Some(settled), Some(descriptor)) if settled.descriptor != descriptor => {
                return invalid("The schema of a call cannot change.");
            }
            _ => {}
        }
        let stream = self.settled.as_ref().expect("it was just settled").stream.clone();
        if !request.write_stream.is_empty() && request.write_stream != stream {
            return invalid("A call is for one stream.");
        }
        let rows = data.rows.map(|rows| rows.serialized_rows).unwrap_or_default();
        if rows.is_empty() {
            return invalid("Rows must be specified.");
        }
        let offset = request.offset.map(u64::try_from).transpose();
        let Ok(offset) = offset else { return invalid("The offset is negative.") };
        if stream.ends_with("/streams/_default") != offset.is_none() {
            return invalid("A default stream takes no offset; to another stream the fake takes rows with one only.");
        }
        Ok(Taken {
            stream,
            offset,
            rows,
            interpretations: request.missing_value_interpretations,
            default_interpretation: request.default_missing_value_interpretation,
        })
    }

    fn answer(&mut self, taken: Taken, state: &mut State, written: &mut bool) -> Step {
        let stream = taken.stream.clone();
        let Some(Due { fault, lifted }) = state.faults.due(Call::Append, table_of(&stream)) else {
            return self.write(taken, state, None, written);
        };
        match fault {
            Fault::Before(ending) => Step::End(ending),
            Fault::Page(_) => Step::End(Ending::Reset),
            Fault::Answer(refusal) => Step::Answer(refusal.answer(&stream)),
            Fault::Rows(test) => self.write(taken, state, Some(&test), written),
            Fault::SomeoneWrites(rows) => {
                state.someone_writes(&stream, rows);
                self.write(taken, state, None, written)
            }
            Fault::StreamGone => {
                state.streams.remove(&stream);
                self.write(taken, state, None, written)
            }
            Fault::After(_) | Fault::Behind(_) | Fault::AnswerAfter(_) | Fault::Held => {
                let step = self.write(taken, state, None, written);
                match (step, fault, lifted) {
                    (Step::Answer(_), Fault::After(ending), _) => Step::End(ending),
                    (Step::Answer(answer), Fault::Behind(ending), _) => Step::AnswerAndEnd(answer, ending),
                    (Step::Answer(_), Fault::AnswerAfter(refusal), _) => Step::Answer(refusal.answer(&stream)),
                    (Step::Answer(answer), Fault::Held, Some(lifted)) => Step::Hold(answer, lifted),
                    (step, ..) => step,
                }
            }
        }
    }

    /// Writes what is asked for, unless it is refused.
    fn write(&mut self, taken: Taken, state: &mut State, test: Option<&RowTest>, written: &mut bool) -> Step {
        let Taken { stream, offset, rows, interpretations, default_interpretation } = taken;
        let settled = self.settled.as_mut().expect("a request was taken");
        let filled = |column: &str| {
            let given = interpretations.get(column).copied().unwrap_or(default_interpretation);
            given == i32::from(MissingValueInterpretation::DefaultValue)
        };
        let written_or = (|| {
            if offset.is_some() {
                // A stream that is not there ends the call; everything else is said in an answer.
                state.stream(&stream).map_err(|refusal| (refusal, true))?;
            }
            let path = table_of(&stream);
            let table = state.table(path).map_err(|refusal| (refusal, true))?;
            let decoder =
                Decoder::new(&settled.descriptor, table, &stream, filled).map_err(|refusal| (refusal, false))?;
            let version = table.version;
            let standing = state.refused_rows.iter().filter(|(refusing, _)| refusing == path).map(|(_, test)| test);
            check(&rows, &decoder, &standing.chain(test).collect::<Vec<_>>()).map_err(|refusal| (refusal, false))?;
            let updated = (settled.told != u64::MAX && settled.told != version).then(|| table.schema());
            settled.told = version;
            state.write(&stream, offset, rows, &Arc::new(decoder)).map_err(|refusal| (refusal, false))?;
            Ok(updated)
        })();
        match written_or {
            Ok(updated_schema) => {
                *written = true;
                let offset = offset.and_then(|offset| i64::try_from(offset).ok());
                Step::Answer(AppendRowsResponse {
                    updated_schema,
                    write_stream: stream,
                    response: Some(Response::AppendResult(AppendResult { offset })),
                    ..AppendRowsResponse::default()
                })
            }
            Err((refusal, true)) => Step::End(Ending::Error(refusal)),
            Err((refusal, false)) => Step::Answer(refusal.answer(&stream)),
        }
    }
}

/// Reads every row. One that is refused refuses all.
fn check(rows: &[Vec<u8>], decoder: &Decoder, tests: &[&RowTest]) -> Result<(), Refusal> {
    let mut errors = Vec::new();
    for (index, row) in (0..).zip(rows) {
        let refused = match decoder.row(row) {
            Err(why) => Some(why),
            Ok(row) => tests.iter().find_map(|test| test(&row)),
        };
        if let Some(message) = refused {
            errors.push(RowError { index, code: row_error::RowErrorCode::FieldsError.into(), message });
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let message = "Errors found while processing rows. Please refer to the row_errors field for details. The list may not be \
                   complete because of the size limitations.";
    Err(Refusal { rows: errors, ..Refusal::new(Code::InvalidArgument, message) })
}

fn digest(rows: &[Vec<u8>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    rows.hash(&mut hasher);
    hasher.finish()
}
