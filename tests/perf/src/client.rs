//! One client for both: the same calls over the same connections, in either's messages.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::wire::{etcd, kv};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Whose messages are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Ours,
    Etcd,
}

/// Where a node serves clients, and how one speaks with it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) dialect: Dialect,
    pub(crate) port: u16,
    /// The authority that signed the server's certificate, PEM; without it nothing is encrypted.
    pub(crate) ca: Option<String>,
}

/// What a node says about itself.
#[derive(Clone, Debug)]
pub(crate) struct NodeStatus {
    pub(crate) is_leader: bool,
    /// Last log entry that is in its state.
    pub(crate) applied: u64,
    pub(crate) cluster: String,
    pub(crate) voters: u64,
}

/// A client; clones share the connection.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    dialect: Dialect,
    grpc: Grpc<Channel>,
}

impl Address {
    fn endpoint(&self) -> Result<Endpoint> {
        let scheme = if self.ca.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://127.0.0.1:{}", self.port))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true);
        let Some(ca) = &self.ca else {
            return Ok(endpoint);
        };
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(ca))
            .domain_name("localhost");
        Ok(endpoint.tls_config(tls)?)
    }

    /// A client with a connection of its own.
    pub(crate) async fn connect(&self) -> Result<Client> {
        let channel = self.endpoint()?.connect().await;
        Ok(self.over(channel.with_context(|| format!("cannot reach port {}", self.port))?))
    }

    /// A client that connects with its first call, and again when the connection broke.
    pub(crate) fn connect_lazy(&self) -> Result<Client> {
        Ok(self.over(self.endpoint()?.connect_lazy()))
    }

    fn over(&self, channel: Channel) -> Client {
        Client {
            dialect: self.dialect,
            grpc: Grpc::new(channel),
        }
    }
}

impl Client {
    pub(crate) async fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), Status> {
        match self.dialect {
            Dialect::Ours => {
                let request = kv::PutRequest { key, value };
                self.call::<_, kv::PutReply>(kv::PUT, request)
                    .await
                    .map(drop)
            }
            Dialect::Etcd => {
                let request = etcd::PutRequest { key, value };
                self.call::<_, etcd::PutReply>(etcd::PUT, request)
                    .await
                    .map(drop)
            }
        }
    }

    /// A linearizable read.
    pub(crate) async fn get(&mut self, key: Bytes) -> Result<Option<Bytes>, Status> {
        match self.dialect {
            Dialect::Ours => {
                let request = kv::GetRequest { key };
                let reply: kv::GetReply = self.call(kv::GET, request).await?;
                Ok(reply.value)
            }
            Dialect::Etcd => {
                let request = etcd::RangeRequest { key };
                let reply: etcd::RangeReply = self.call(etcd::RANGE, request).await?;
                Ok(reply.found.into_iter().next().map(|found| found.value))
            }
        }
    }

    /// The values that `key` gets from now on. Returns once the server has begun to watch.
    pub(crate) async fn watch(
        &mut self,
        key: Bytes,
    ) -> Result<BoxStream<'static, Result<Bytes, Status>>, Status> {
        match self.dialect {
            Dialect::Ours => self.watch_ours(key).await,
            Dialect::Etcd => self.watch_etcd(key).await,
        }
    }

    async fn watch_ours(
        &mut self,
        key: Bytes,
    ) -> Result<BoxStream<'static, Result<Bytes, Status>>, Status> {
        self.ready().await?;
        let codec = ProstCodec::<kv::WatchRequest, kv::ChangeEvent>::default();
        let request = Request::new(kv::WatchRequest { key });
        let path = PathAndQuery::from_static(kv::WATCH);
        let stream = self.grpc.server_streaming(request, path, codec).await?;
        let mut stream = stream.into_inner();
        stream.message().await?.ok_or_else(ended)?;
        let values = stream.try_filter_map(async |event| Ok(event.value));
        Ok(values.boxed())
    }

    async fn watch_etcd(
        &mut self,
        key: Bytes,
    ) -> Result<BoxStream<'static, Result<Bytes, Status>>, Status> {
        self.ready().await?;
        let codec = ProstCodec::<etcd::WatchRequest, etcd::WatchReply>::default();
        let create = Some(etcd::WatchCreate { key });
        let first = futures::stream::once(async { etcd::WatchRequest { create } });
        // The request stays open: its end would end the watch.
        let request = Request::new(first.chain(futures::stream::pending()));
        let path = PathAndQuery::from_static(etcd::WATCH);
        let stream = self.grpc.streaming(request, path, codec).await?;
        let mut stream = stream.into_inner();
        let first = stream.message().await?.ok_or_else(ended)?;
        if !first.created || first.cancelled {
            return Err(ended());
        }
        let values = stream.map_ok(|reply| {
            let values = reply.events.into_iter().filter_map(|event| event.kv);
            futures::stream::iter(values.map(|kv| Ok(kv.value)))
        });
        Ok(values.try_flatten().boxed())
    }

    pub(crate) async fn status(&mut self) -> Result<NodeStatus, Status> {
        match self.dialect {
            Dialect::Ours => {
                let reply: kv::StatusReply = self.call(kv::STATUS, kv::StatusRequest {}).await?;
                Ok(NodeStatus {
                    is_leader: reply.is_leader,
                    applied: reply.applied,
                    cluster: reply.cluster,
                    voters: reply.voters,
                })
            }
            Dialect::Etcd => {
                let request = etcd::StatusRequest {};
                let reply: etcd::StatusReply = self.call(etcd::STATUS, request).await?;
                let member = reply.header.map_or(0, |header| header.member);
                Ok(NodeStatus {
                    is_leader: reply.leader != 0 && reply.leader == member,
                    applied: reply.applied,
                    cluster: String::new(),
                    voters: 3,
                })
            }
        }
    }

    /// Has our leader add a node; etcd's begin as three.
    pub(crate) async fn admit(&mut self, node: u64, address: String) -> Result<(), Status> {
        let request = kv::AdmitRequest { node, address };
        self.call::<_, kv::AdmitReply>(kv::ADMIT, request)
            .await
            .map(drop)
    }

    async fn call<Q, A>(&mut self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let path = PathAndQuery::from_static(path);
        let codec = ProstCodec::<Q, A>::default();
        let reply = self.grpc.unary(Request::new(request), path, codec).await?;
        Ok(reply.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.grpc
            .ready()
            .await
            .map_err(|e| Status::unavailable(e.to_string()))
    }
}

fn ended() -> Status {
    Status::unavailable("the watch ended before it began")
}
