//! How two verdicts on the same event differ: kind, stage, code and typed values, free-text reasons aside.

use super::manifest::Manifest;
use crate::row::{Row, Value};
use crate::verdict::{Fault, Verdict};
use std::fmt;

/// What a rule made of an event: its verdict, or the fault that stands.
pub type Opinion = Result<Verdict, Fault>;

/// A difference between an old rule's opinion of an event and a new one's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// Accepted before, rejected now, at this stage.
    AcceptToReject(String),
    /// Rejected before, at this stage, accepted now.
    RejectToAccept(String),
    /// Rejected by both, at another stage.
    Stage(String, String),
    /// Accepted by both, with another value in this column.
    Column(String),
    /// Ignored by one of them: what it was before and is now.
    Ignore(&'static str, &'static str),
    /// The new rule faults where the old one did not, with this code.
    NewFault(&'static str),
    /// The old rule faulted, with this code, where the new one does not.
    FaultGone(&'static str),
    /// Both fault, with other codes.
    FaultCode(&'static str, &'static str),
}

impl fmt::Display for Difference {
    /// The kind as reports, metrics and tables name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AcceptToReject(stage) => write!(f, "accept→reject {stage}"),
            Self::RejectToAccept(stage) => write!(f, "reject {stage}→accept"),
            Self::Stage(old, new) => write!(f, "reject {old}→reject {new}"),
            Self::Column(name) => write!(f, "column {name}"),
            Self::Ignore(old, new) => write!(f, "{old}→{new}"),
            Self::NewFault(code) => write!(f, "new fault {code}"),
            Self::FaultGone(code) => write!(f, "fault {code} gone"),
            Self::FaultCode(old, new) => write!(f, "fault {old}→fault {new}"),
        }
    }
}

impl Difference {
    /// The kind without the names in it: for a label, which has to be bounded.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::AcceptToReject(_) => "accept_to_reject",
            Self::RejectToAccept(_) => "reject_to_accept",
            Self::Stage(..) => "stage",
            Self::Column(_) => "column",
            Self::Ignore(..) => "ignore",
            Self::NewFault(_) => "new_fault",
            Self::FaultGone(_) => "fault_gone",
            Self::FaultCode(..) => "fault_code",
        }
    }

    /// Whether an event that reached silver no longer does: one that is ignored is not even in quarantine.
    pub fn loses(&self) -> bool {
        matches!(self, Self::AcceptToReject(_) | Self::Ignore("accept", _))
    }

    /// Whether an event that did not reach silver now does.
    pub fn gains(&self) -> bool {
        matches!(self, Self::RejectToAccept(_) | Self::Ignore(_, "accept"))
    }

    /// Whether the new rule misbehaves where the old one did not.
    pub fn faults(&self) -> bool {
        matches!(self, Self::NewFault(_))
    }
}

/// Every difference; none if the opinions are the same. Columns are compared by name, without regard to case; a column
/// that one rule does not have is null.
pub fn compare(old: (&Manifest, &Opinion), new: (&Manifest, &Opinion)) -> Vec<Difference> {
    let one = |difference| vec![difference];
    match (old.1, new.1) {
        (Err(a), Err(b)) if a.code == b.code => Vec::new(),
        (Err(a), Err(b)) => one(Difference::FaultCode(a.code.as_str(), b.code.as_str())),
        (Ok(_), Err(fault)) => one(Difference::NewFault(fault.code.as_str())),
        (Err(fault), Ok(_)) => one(Difference::FaultGone(fault.code.as_str())),
        (Ok(Verdict::Accept(a)), Ok(Verdict::Accept(b))) => columns((old.0, a), (new.0, b)),
        (Ok(Verdict::Accept(_)), Ok(Verdict::Reject(rejection))) => {
            one(Difference::AcceptToReject(rejection.stage.to_string()))
        }
        (Ok(Verdict::Reject(rejection)), Ok(Verdict::Accept(_))) => {
            one(Difference::RejectToAccept(rejection.stage.to_string()))
        }
        (Ok(Verdict::Reject(a)), Ok(Verdict::Reject(b))) if a.stage == b.stage && a.code == b.code => Vec::new(),
        (Ok(Verdict::Reject(a)), Ok(Verdict::Reject(b))) => {
            one(Difference::Stage(a.stage.to_string(), b.stage.to_string()))
        }
        (Ok(Verdict::Ignore(_)), Ok(Verdict::Ignore(_))) => Vec::new(),
        (Ok(a), Ok(b)) => one(Difference::Ignore(name(a), name(b))),
    }
}

fn name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Accept(_) => "accept",
        Verdict::Reject(_) => "reject",
        Verdict::Ignore(_) => "ignore",
    }
}

fn columns(old: (&Manifest, &Row), new: (&Manifest, &Row)) -> Vec<Difference> {
    let value = |(manifest, row): (&Manifest, &Row), name: &str| {
        manifest.column(name).map_or(Value::Null, |index| row[index].clone())
    };
    let mut differences = Vec::new();
    for (index, column) in old.0.columns.iter().enumerate() {
        let same = match new.0.column(&column.name) {
            Some(other) => old.1[index] == new.1[other],
            None => old.1[index] == Value::Null,
        };
        if !same {
            differences.push(Difference::Column(column.name.clone()));
        }
    }
    for column in new.0.columns.iter().filter(|column| old.0.column(&column.name).is_none()) {
        if value(new, &column.name) != Value::Null {
            differences.push(Difference::Column(column.name.clone()));
        }
    }
    differences
}

/// An opinion in a few words, for samples: the row as JSON, or stage and reason.
pub fn shown(manifest: &Manifest, opinion: &Opinion) -> String {
    match opinion {
        Ok(Verdict::Accept(row)) => {
            let columns = manifest.columns.iter().zip(row);
            let row: serde_json::Map<String, serde_json::Value> =
                columns.map(|(column, value)| (column.name.clone(), value.to_json())).collect();
            format!("accept {}", serde_json::Value::Object(row))
        }
        Ok(Verdict::Reject(rejection)) => format!("reject {rejection}"),
        Ok(Verdict::Ignore(reason)) => format!("ignore: {reason}"),
        Err(fault) => format!("fault {}: {}", fault.code, fault.detail),
    }
}

/// The value of one column of an accepted row, as JSON.
pub fn column((manifest, opinion): (&Manifest, &Opinion), name: &str) -> String {
    match (opinion, manifest.column(name)) {
        (Ok(Verdict::Accept(row)), Some(index)) => row[index].to_json().to_string(),
        _ => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Column, ColumnType};
    use crate::verdict::{FaultCode, Rejection};

    fn manifest(columns: &[&str]) -> Manifest {
        Manifest {
            name: "r".into(),
            version: "1.0.0".into(),
            event_versions: vec!["1".into()],
            attributes: vec![],
            columns: columns.iter().map(|name| Column::new(*name, ColumnType::Int64, true)).collect(),
            event_time: None,
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "an opinion is what the tests compare")]
    fn accept(values: &[i64]) -> Opinion {
        Ok(Verdict::Accept(values.iter().map(|n| Value::Int64(*n)).collect()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "an opinion is what the tests compare")]
    fn reject(stage: &'static str, reason: &str) -> Opinion {
        Ok(Verdict::Reject(Rejection { stage: stage.into(), code: None, reason: reason.into() }))
    }

    fn fault(code: FaultCode) -> Opinion {
        Err(Fault::new(code, "x"))
    }

    #[test]
    fn kinds_are_told_apart_and_reasons_do_not_matter() {
        let m = manifest(&["a"]);
        let kinds = |old: &Opinion, new: &Opinion| {
            compare((&m, old), (&m, new)).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&accept(&[1]), &accept(&[1])), [""; 0]);
        assert_eq!(kinds(&accept(&[1]), &accept(&[2])), ["column a"]);
        assert_eq!(kinds(&accept(&[1]), &reject("S", "x")), ["accept→reject S"]);
        assert_eq!(kinds(&reject("S", "x"), &accept(&[1])), ["reject S→accept"]);
        assert_eq!(kinds(&reject("S", "x"), &reject("S", "y")), [""; 0]);
        assert_eq!(kinds(&reject("S", "x"), &reject("T", "x")), ["reject S→reject T"]);
        assert_eq!(kinds(&accept(&[1]), &Ok(Verdict::Ignore("x".into()))), ["accept→ignore"]);
        assert_eq!(kinds(&accept(&[1]), &fault(FaultCode::Fuel)), ["new fault fuel"]);
        assert_eq!(kinds(&fault(FaultCode::Fuel), &reject("S", "x")), ["fault fuel gone"]);
        assert_eq!(kinds(&fault(FaultCode::Fuel), &fault(FaultCode::Trap)), ["fault fuel→fault trap"]);
        assert_eq!(kinds(&fault(FaultCode::Fuel), &fault(FaultCode::Fuel)), [""; 0]);
    }

    #[test]
    fn columns_are_compared_by_name_and_an_absent_one_is_null() {
        let (old, new) = (manifest(&["a", "b"]), manifest(&["c", "A"]));
        let null = Ok(Verdict::Accept(vec![Value::Null, Value::Int64(1)]));
        assert_eq!(compare((&old, &accept(&[1, 2])), (&new, &null)), [Difference::Column("b".into())]);
        let both = compare((&old, &accept(&[1, 2])), (&new, &accept(&[3, 4])));
        assert_eq!(both, ["a", "b", "c"].map(|name| Difference::Column(name.into())));
    }
}
