//! As much of Pub/Sub's messages on the wire as the front looks at, and a codec that leaves them as they are.

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// The first request of a pull.
#[derive(prost::Message)]
pub(super) struct StreamingPull {
    #[prost(string, tag = "1")]
    pub subscription: String,
}

/// Messages of a pull.
#[derive(prost::Message)]
pub(super) struct Pulled {
    #[prost(message, repeated, tag = "1")]
    pub received: Vec<Received>,
}

/// One of them.
#[derive(prost::Message)]
pub(super) struct Received {
    #[prost(string, tag = "1")]
    pub ack_id: String,
}

/// An ack.
#[derive(prost::Message)]
pub(super) struct Acknowledge {
    #[prost(string, repeated, tag = "2")]
    pub ack_ids: Vec<String>,
}

/// A longer lease, or with 0 its end.
#[derive(prost::Message)]
pub(super) struct ModifyAckDeadline {
    #[prost(string, tag = "1")]
    pub subscription: String,
    #[prost(int32, tag = "3")]
    pub ack_deadline_seconds: i32,
    #[prost(string, repeated, tag = "4")]
    pub ack_ids: Vec<String>,
}

/// Messages as bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
