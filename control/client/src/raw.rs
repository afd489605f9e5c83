//! Calls with encoded messages, for programs that know the contract by its descriptors.

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Status};

use crate::session::{ANSWER_BYTES_MAX, Client};

impl Client {
    /// Calls the unary method with a path such as `/metalstack.api.v2.IPService/Get`. Request and
    /// answer are encoded messages.
    ///
    /// # Errors
    /// The server's refusal, or `invalid_argument` for a path that is not valid.
    pub async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Status> {
        let path: PathAndQuery = path
            .parse()
            .map_err(|_| Status::invalid_argument(format!("{path:?} is not a method's path")))?;
        let mut grpc = Grpc::new(self.session()).max_decoding_message_size(ANSWER_BYTES_MAX);
        grpc.ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let answer = grpc.unary(Request::new(message), path, RawCodec).await?;
        Ok(answer.into_inner())
    }
}

/// A codec that passes encoded messages through.
#[derive(Debug, Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
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

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
