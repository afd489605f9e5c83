//! Messages of the conformance suite (`connectrpc.conformance.v1`) that its server reads and
//! writes: their names and numbers.

use prost::Message;
use prost_types::Any;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TlsCreds {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) cert: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
}

/// What the suite wants of a server, on its standard input.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ServerCompatRequest {
    #[prost(bool, tag = "4")]
    pub(crate) use_tls: bool,
    #[prost(uint32, tag = "6")]
    pub(crate) message_receive_limit: u32,
    #[prost(message, optional, tag = "7")]
    pub(crate) server_creds: Option<TlsCreds>,
}

/// Where the server is, on its standard output.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ServerCompatResponse {
    #[prost(string, tag = "1")]
    pub(crate) host: String,
    #[prost(uint32, tag = "2")]
    pub(crate) port: u32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) pem_cert: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Error {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, optional, tag = "2")]
    pub(crate) message: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// How to answer: of the two definitions, for one answer and for a stream, as one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Definition {
    pub(crate) headers: Vec<Header>,
    pub(crate) data: Vec<Vec<u8>>,
    pub(crate) error: Option<Error>,
    pub(crate) trailers: Vec<Header>,
    pub(crate) delay_ms: u32,
}

#[derive(Clone, PartialEq, Message)]
struct UnaryDefinition {
    #[prost(message, repeated, tag = "1")]
    headers: Vec<Header>,
    #[prost(bytes = "vec", optional, tag = "2")]
    data: Option<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    error: Option<Error>,
    #[prost(message, repeated, tag = "4")]
    trailers: Vec<Header>,
    #[prost(uint32, tag = "6")]
    delay_ms: u32,
}

#[derive(Clone, PartialEq, Message)]
struct StreamDefinition {
    #[prost(message, repeated, tag = "1")]
    headers: Vec<Header>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    data: Vec<Vec<u8>>,
    #[prost(uint32, tag = "3")]
    delay_ms: u32,
    #[prost(message, optional, tag = "4")]
    error: Option<Error>,
    #[prost(message, repeated, tag = "5")]
    trailers: Vec<Header>,
}

#[derive(Clone, PartialEq, Message)]
struct UnaryRequest {
    #[prost(message, optional, tag = "1")]
    definition: Option<UnaryDefinition>,
}

#[derive(Clone, PartialEq, Message)]
struct StreamRequest {
    #[prost(message, optional, tag = "1")]
    definition: Option<StreamDefinition>,
    /// Of bidirectional streams alone; the others have bytes there.
    #[prost(bool, tag = "2")]
    full_duplex: bool,
}

#[derive(Clone, PartialEq, Message)]
struct ServerStreamRequest {
    #[prost(message, optional, tag = "1")]
    definition: Option<StreamDefinition>,
}

/// The definition in a request that is answered once.
pub(crate) fn unary(message: &[u8]) -> Option<Definition> {
    let wanted = UnaryRequest::decode(message).unwrap().definition?;
    Some(Definition {
        headers: wanted.headers,
        data: wanted.data.into_iter().collect(),
        error: wanted.error,
        trailers: wanted.trailers,
        delay_ms: wanted.delay_ms,
    })
}

/// The definition in a request that is answered by a stream, and whether answers alternate with
/// requests.
pub(crate) fn stream(message: &[u8], is_bidi: bool) -> (Option<Definition>, bool) {
    let (wanted, full_duplex) = if is_bidi {
        let request = StreamRequest::decode(message).unwrap();
        (request.definition, request.full_duplex)
    } else {
        let request = ServerStreamRequest::decode(message).unwrap();
        (request.definition, false)
    };
    let definition = wanted.map(|wanted| Definition {
        headers: wanted.headers,
        data: wanted.data,
        error: wanted.error,
        trailers: wanted.trailers,
        delay_ms: wanted.delay_ms,
    });
    (definition, full_duplex)
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestInfo {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<Header>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) timeout_ms: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) requests: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Payload {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(crate) info: Option<RequestInfo>,
}

/// Every answer of the service has this one field.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Answer {
    #[prost(message, optional, tag = "1")]
    pub(crate) payload: Option<Payload>,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}
