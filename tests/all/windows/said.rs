//! What `preflight simulate` says, read back.

use preflight_tests::beam::{Late, Pane};
use serde_json::Value;

/// Panes and late events, each in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub panes: Vec<Pane>,
    pub late: Vec<Late>,
}

impl Said {
    /// Reads what was printed; anything but panes and late events is an error.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut said = Self::default();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).map_err(|error| format!("{error} in {line}"))?;
            if let Some(pane) = value.get("pane") {
                said.panes.push(read_pane(pane).ok_or_else(|| format!("not a pane: {line}"))?);
            } else if let Some(late) = value.get("late") {
                said.late.push(serde_json::from_value(late.clone()).map_err(|error| format!("{error} in {line}"))?);
            } else {
                return Err(format!("neither a pane nor a late event: {line}"));
            }
        }
        Ok(said)
    }
}

/// A pane without events has no revenue, and one that takes back has no orders either.
fn read_pane(pane: &Value) -> Option<Pane> {
    let measures = &pane["measures"];
    let orders = if measures["orders"].is_null() { 0 } else { measures["orders"].as_i64()? };
    let revenue = if measures["revenue"].is_null() { 0 } else { measures["revenue"].as_str()?.parse().ok()? };
    Some(Pane {
        window: serde_json::from_value(pane["window"].clone()).ok()?,
        key: serde_json::from_value(pane["key"].clone()).ok()?,
        index: u32::try_from(pane["index"].as_u64()?).ok()?,
        timing: pane["timing"].as_str()?.to_owned(),
        orders,
        revenue,
    })
}
