//! What becomes of a payload that is above the limit: its first bytes are kept, and the event is refused.

use crate::digest::Digest;
use crate::event::{Event, Form, KEPT};
use crate::verdict::{Rejection, stage};
use bytes::Bytes;

/// Refuses an event whose payload is above `limit` bytes, keeping the beginning of it.
pub(super) fn refuse_above(limit: usize, event: &mut Event) {
    if event.payload.len() <= limit {
        return;
    }
    let digest = Digest::of(&event.payload);
    let size = event.payload.len() as u64;
    // A copy: a part would keep all of it in memory.
    event.payload = Bytes::copy_from_slice(&event.payload[..event.payload.len().min(KEPT)]);
    event.form = Form::Refused(too_large(size, limit, &digest.to_string(), event.payload.len()));
}

/// The refusal of a payload of `size` bytes, of which `kept` bytes are kept.
pub(super) fn too_large(size: u64, limit: usize, digest: &str, kept: usize) -> Rejection {
    let reason = format!(
        "{size} bytes are above the limit of {limit} bytes; the first {kept} bytes are kept, the {digest} is of all"
    );
    Rejection::by_host(stage::PAYLOAD_TOO_LARGE, "payload_too_large", reason)
}
