//! The messages of `grpc/testing/messages.proto`, as far as the service reads and writes them.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct Payload {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub body: Vec<u8>,
}

/// The status that a call ends with.
#[derive(Clone, PartialEq, Message)]
pub struct EchoStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SimpleRequest {
    #[prost(int32, tag = "2")]
    pub response_size: i32,
    #[prost(message, optional, tag = "3")]
    pub payload: Option<Payload>,
    #[prost(message, optional, tag = "7")]
    pub response_status: Option<EchoStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SimpleResponse {
    #[prost(message, optional, tag = "1")]
    pub payload: Option<Payload>,
}

/// `StreamingInputCallRequest`
#[derive(Clone, PartialEq, Message)]
pub struct InputRequest {
    #[prost(message, optional, tag = "1")]
    pub payload: Option<Payload>,
}

/// `StreamingInputCallResponse`
#[derive(Clone, PartialEq, Message)]
pub struct InputResponse {
    #[prost(int32, tag = "1")]
    pub aggregated_payload_size: i32,
}

/// One message that is asked for: its size, and the time before it.
#[derive(Clone, PartialEq, Message)]
pub struct ResponseParameters {
    #[prost(int32, tag = "1")]
    pub size: i32,
    #[prost(int32, tag = "2")]
    pub interval_us: i32,
}

/// `StreamingOutputCallRequest`
#[derive(Clone, PartialEq, Message)]
pub struct OutputRequest {
    #[prost(message, repeated, tag = "2")]
    pub response_parameters: Vec<ResponseParameters>,
    #[prost(message, optional, tag = "3")]
    pub payload: Option<Payload>,
    #[prost(message, optional, tag = "7")]
    pub response_status: Option<EchoStatus>,
}

/// `StreamingOutputCallResponse`
#[derive(Clone, PartialEq, Message)]
pub struct OutputResponse {
    #[prost(message, optional, tag = "1")]
    pub payload: Option<Payload>,
}

/// A payload of so many zeros.
pub fn payload(size: i32) -> Option<Payload> {
    Some(Payload { kind: 0, body: vec![0; usize::try_from(size).unwrap_or_default()] })
}

/// How many bytes a payload has.
pub fn size(payload: Option<&Payload>) -> i32 {
    payload.map_or(0, |payload| i32::try_from(payload.body.len()).unwrap_or(i32::MAX))
}
