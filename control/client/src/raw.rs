//! Calls whose messages are bytes: for programs that know the contract by its descriptors.

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Status};

use crate::session::{ANSWER_BYTES_MAX, Client};

impl Client {
    /// Calls the method behind a URL path such as `/metalstack.api.v2.IPService/Get`, which must
    /// answer with one message; both messages are encoded.
    ///
    /// # Errors
    /// The server's refusal; `invalid_argument` for a path that is none.
    pub async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Status> {
        let path: PathAndQuery = path
            .parse()
            .map_err(|_| Status::invalid_argument(format!("{path:?} is no method's path")))?;
        let mut grpc = Grpc::new(self.session()).max_decoding_message_size(ANSWER_BYTES_MAX);
        grpc.ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let answer = grpc.unary(Request::new(message), path, Raw).await?;
        Ok(answer.into_inner())
    }
}

/// Messages as they are on the wire.
#[derive(Debug, Clone, Copy)]
struct Raw;

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

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
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
