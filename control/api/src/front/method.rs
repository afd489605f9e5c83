//! The methods that the front knows, from the contract's descriptors, and their JSON form.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor,
};
use tonic::Status;

/// One method of the public API.
#[derive(Debug, Clone)]
pub struct Method {
    /// `/package.Service/Method`.
    pub path: String,
    /// Whether it answers with a stream of messages.
    pub streams: bool,
    input: MessageDescriptor,
    output: MessageDescriptor,
}

impl Method {
    fn new(descriptor: &MethodDescriptor) -> Self {
        let service = descriptor.parent_service().full_name();
        Self {
            path: format!("/{service}/{}", descriptor.name()),
            streams: descriptor.is_server_streaming(),
            input: descriptor.input(),
            output: descriptor.output(),
        }
    }

    /// The request as a message that can be looked into by field name.
    ///
    /// # Errors
    /// `invalid_argument` when the bytes are no such message.
    pub fn decode(&self, message: &Bytes) -> Result<DynamicMessage, Status> {
        DynamicMessage::decode(self.input.clone(), message.clone()).map_err(|_| {
            Status::invalid_argument(format!("the request is not a {}", self.input.full_name()))
        })
    }

    /// Reads the JSON form of the request; unknown fields are ignored, as other servers of this
    /// contract do. An empty body is the empty message.
    ///
    /// # Errors
    /// `invalid_argument` with the place of the mistake.
    pub fn from_json(&self, json: &[u8]) -> Result<Bytes, Status> {
        if json.iter().all(u8::is_ascii_whitespace) {
            return Ok(Bytes::new());
        }
        let mut reader = serde_json::Deserializer::from_slice(json);
        let options = DeserializeOptions::new().deny_unknown_fields(false);
        let message =
            DynamicMessage::deserialize_with_options(self.input.clone(), &mut reader, &options)
                .and_then(|message| reader.end().map(|()| message))
                .map_err(|error| {
                    let name = self.input.full_name();
                    Status::invalid_argument(format!(
                        "the request is not the JSON of a {name}: {error}"
                    ))
                })?;
        Ok(message.encode_to_vec().into())
    }

    /// Writes the JSON form of an answer.
    ///
    /// # Errors
    /// `internal` when a handler answered something else than its method promises.
    pub fn to_json(&self, message: Bytes) -> Result<Bytes, Status> {
        let broken = || Status::internal("the answer cannot be written as JSON");
        let message = DynamicMessage::decode(self.output.clone(), message).map_err(|_| broken())?;
        serde_json::to_vec(&message)
            .map(Bytes::from)
            .map_err(|_| broken())
    }
}

/// Methods by path.
#[derive(Debug, Clone, Default)]
pub struct Methods {
    by_path: HashMap<String, Method>,
}

impl Methods {
    /// All methods of all services in the pool.
    pub fn from_pool(pool: &DescriptorPool) -> Self {
        let methods = pool.services().flat_map(|service| {
            service
                .methods()
                .map(|method| Method::new(&method))
                .collect::<Vec<_>>()
        });
        Self {
            by_path: methods
                .map(|method| (method.path.clone(), method))
                .collect(),
        }
    }

    /// The method at a request's path.
    pub fn get(&self, path: &str) -> Option<&Method> {
        self.by_path.get(path)
    }
}
