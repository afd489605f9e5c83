//! Messages: our key-value service's, and those of etcd's v3 API that the bench uses.
//!
//! etcd's are written down from its published field numbers; fields that the bench does not look
//! at are left out.

use std::marker::PhantomData;

use bytes::{Buf, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Sends messages and takes answers as they arrive, not decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsArrived<T>(PhantomData<T>);

impl<T> Default for AsArrived<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Message + 'static> Codec for AsArrived<T> {
    type Encode = T;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl<T: Message> Encoder for AsArrived<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let encoded = item.encode(out);
        encoded.map_err(|e| Status::internal(e.to_string()))
    }
}

impl<T> Decoder for AsArrived<T> {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}

/// Our service.
pub(crate) mod kv {
    use super::Bytes;

    pub(crate) const NAME: &str = "metalmesh.bench.Kv";
    pub(crate) const PUT: &str = "/metalmesh.bench.Kv/Put";
    pub(crate) const GET: &str = "/metalmesh.bench.Kv/Get";
    pub(crate) const WATCH: &str = "/metalmesh.bench.Kv/Watch";
    pub(crate) const STATUS: &str = "/metalmesh.bench.Kv/Status";
    pub(crate) const ADMIT: &str = "/metalmesh.bench.Kv/Admit";

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct PutRequest {
        #[prost(bytes = "bytes", tag = "1")]
        pub(crate) key: Bytes,
        #[prost(bytes = "bytes", tag = "2")]
        pub(crate) value: Bytes,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(crate) struct PutReply {
        #[prost(uint64, tag = "1")]
        pub(crate) revision: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct GetRequest {
        #[prost(bytes = "bytes", tag = "1")]
        pub(crate) key: Bytes,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct GetReply {
        #[prost(uint64, tag = "1")]
        pub(crate) revision: u64,
        #[prost(bytes = "bytes", optional, tag = "2")]
        pub(crate) value: Option<Bytes>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct WatchRequest {
        #[prost(bytes = "bytes", tag = "1")]
        pub(crate) key: Bytes,
    }

    /// The first one has no value: from here on every change is told.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct ChangeEvent {
        #[prost(uint64, tag = "1")]
        pub(crate) revision: u64,
        #[prost(bytes = "bytes", optional, tag = "2")]
        pub(crate) value: Option<Bytes>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(crate) struct StatusRequest {}

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct StatusReply {
        #[prost(bool, tag = "1")]
        pub(crate) is_leader: bool,
        #[prost(uint64, tag = "2")]
        pub(crate) applied: u64,
        /// The cluster's id, which a new node needs.
        #[prost(string, tag = "3")]
        pub(crate) cluster: String,
        #[prost(uint64, tag = "4")]
        pub(crate) voters: u64,
    }

    /// Adds a node and gives it a vote once it has caught up.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct AdmitRequest {
        #[prost(uint64, tag = "1")]
        pub(crate) node: u64,
        #[prost(string, tag = "2")]
        pub(crate) address: String,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(crate) struct AdmitReply {}
}

/// etcd's v3 API.
pub(crate) mod etcd {
    use super::Bytes;

    pub(crate) const PUT: &str = "/etcdserverpb.KV/Put";
    pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(crate) const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(crate) struct Header {
        #[prost(uint64, tag = "2")]
        pub(crate) member: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct KeyValue {
        #[prost(bytes = "bytes", tag = "5")]
        pub(crate) value: Bytes,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct PutRequest {
        #[prost(bytes = "bytes", tag = "1")]
        pub(crate) key: Bytes,
        #[prost(bytes = "bytes", tag = "2")]
        pub(crate) value: Bytes,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(crate) struct PutReply {}

    /// Linearizable unless it is asked to be less.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct RangeRequest {
        #[prost(bytes = "bytes", tag = "1")]
        pub(crate) key: Bytes,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct RangeReply {
        #[prost(message, repeated, tag = "2")]
        pub(crate) found: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct WatchRequest {
        #[prost(message, optional, tag = "1")]
        pub(crate) create: Option<WatchCreate>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct WatchCreate {
        #[prost(bytes = "bytes", tag = "1")]
        pub(crate) key: Bytes,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct WatchReply {
        #[prost(bool, tag = "3")]
        pub(crate) created: bool,
        #[prost(bool, tag = "4")]
        pub(crate) cancelled: bool,
        #[prost(message, repeated, tag = "11")]
        pub(crate) events: Vec<Event>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Event {
        #[prost(message, optional, tag = "2")]
        pub(crate) kv: Option<KeyValue>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub(crate) struct StatusRequest {}

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct StatusReply {
        #[prost(message, optional, tag = "1")]
        pub(crate) header: Option<Header>,
        #[prost(uint64, tag = "4")]
        pub(crate) leader: u64,
        #[prost(uint64, tag = "7")]
        pub(crate) applied: u64,
    }
}
