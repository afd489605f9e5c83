//! Our node's gRPC service: values by key over [`Store`].

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes};
use control_store::{
    ChangeEvent, MemberChange, MembershipError, ProposeError, Store, StoreError, Subscription,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use prost::Message;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use crate::cluster::POLL;
use crate::machine::{Put, Values};
use crate::wire::kv;

/// How long a new node may take to catch up.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(30);

/// The service; clones share the store.
#[derive(Clone, Debug)]
pub(crate) struct Kv {
    pub(crate) store: Store<Values>,
}

impl Kv {
    async fn put(self, request: Request<kv::PutRequest>) -> Result<Response<kv::PutReply>, Status> {
        let kv::PutRequest { key, value } = request.into_inner();
        match self.store.propose(&(), &Put { key, value }).await {
            Ok(revision) => Ok(Response::new(kv::PutReply { revision })),
            Err(ProposeError::Rejected(never)) => match never {},
            Err(ProposeError::Store(error)) => Err(status(&error)),
        }
    }

    async fn get(self, request: Request<kv::GetRequest>) -> Result<Response<kv::GetReply>, Status> {
        let key = request.into_inner().key;
        let reply = self.store.read_versioned(|values, revision| kv::GetReply {
            revision: revision.0,
            value: values.get(&key),
        });
        reply.await.map(Response::new).map_err(|e| status(&e))
    }

    async fn watch(
        self,
        request: Request<kv::WatchRequest>,
    ) -> Result<Response<BoxStream<'static, Result<Bytes, Status>>>, Status> {
        let key = request.into_inner().key;
        let began = kv::ChangeEvent::default().encode_to_vec().into();
        let events = futures::stream::unfold(self.store.watch(), move |mut changes| {
            let key = key.clone();
            async move {
                let event = next_of(&mut changes, &key).await?;
                Some((event, changes))
            }
        });
        let events = futures::stream::once(async { Ok(began) }).chain(events);
        Ok(Response::new(events.boxed()))
    }

    async fn status(
        self,
        _request: Request<kv::StatusRequest>,
    ) -> Result<Response<kv::StatusReply>, Status> {
        let metrics = self.store.metrics();
        Ok(Response::new(kv::StatusReply {
            is_leader: self.store.is_leader(),
            applied: metrics.applied.unwrap_or(0),
            cluster: self.store.cluster_id().to_string(),
            voters: self.store.members().iter().filter(|m| m.is_voter).count() as u64,
        }))
    }

    async fn admit(
        self,
        request: Request<kv::AdmitRequest>,
    ) -> Result<Response<kv::AdmitReply>, Status> {
        let kv::AdmitRequest { node, address } = request.into_inner();
        let add = MemberChange::Add { node, address };
        let refused = |e: MembershipError| Status::failed_precondition(e.to_string());
        self.store
            .change_members_here(&add)
            .await
            .map_err(refused)?;
        let until = Instant::now() + CATCH_UP_TIMEOUT;
        // It is promoted once it has answered and has the whole log.
        while let Err(error) = self
            .store
            .change_members_here(&MemberChange::Promote { node })
            .await
        {
            if Instant::now() > until {
                return Err(refused(error));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(Response::new(kv::AdmitReply {}))
    }
}

/// Values by key, each event encoded.
struct Encoded(Vec<(Bytes, Bytes)>);

/// The next event about `key`. Each change is encoded once, however many watch it.
async fn next_of(
    changes: &mut Subscription<(Bytes, Bytes)>,
    key: &Bytes,
) -> Option<Result<Bytes, Status>> {
    loop {
        let (revision, changes) = match changes.next().await? {
            ChangeEvent::Changed { revision, changes } => (revision.0, changes),
            ChangeEvent::Resync => return Some(Err(Status::out_of_range("read and watch again"))),
        };
        if !changes.iter().any(|(changed, _)| changed == key) {
            continue;
        }
        let encoded = changes.derived(|changes| {
            let encode = |(key, value): &(Bytes, Bytes)| {
                let value = Some(value.clone());
                let event = kv::ChangeEvent { revision, value };
                (key.clone(), event.encode_to_vec().into())
            };
            Encoded(changes.iter().map(encode).collect())
        });
        if let Some((_, event)) = encoded.0.iter().find(|(changed, _)| changed == key) {
            return Some(Ok(event.clone()));
        }
    }
}

fn status(error: &StoreError) -> Status {
    let message = error.to_string();
    match error {
        StoreError::Busy { .. } => Status::resource_exhausted(message),
        StoreError::TooLarge { .. } => Status::invalid_argument(message),
        _ => Status::unavailable(message),
    }
}

impl NamedService for Kv {
    const NAME: &'static str = kv::NAME;
}

impl Service<http::Request<Body>> for Kv {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let this = self.clone();
        async move { Ok(this.answer(request).await) }.boxed()
    }
}

impl Kv {
    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        match request.uri().path() {
            kv::PUT => {
                let method = service_fn(move |request| self.clone().put(request));
                Grpc::new(ProstCodec::default())
                    .unary(method, request)
                    .await
            }
            kv::GET => {
                let method = service_fn(move |request| self.clone().get(request));
                Grpc::new(ProstCodec::default())
                    .unary(method, request)
                    .await
            }
            kv::WATCH => {
                let method = service_fn(move |request| self.clone().watch(request));
                Grpc::new(EncodedCodec)
                    .server_streaming(method, request)
                    .await
            }
            kv::STATUS => {
                let method = service_fn(move |request| self.clone().status(request));
                Grpc::new(ProstCodec::default())
                    .unary(method, request)
                    .await
            }
            kv::ADMIT => {
                let method = service_fn(move |request| self.clone().admit(request));
                Grpc::new(ProstCodec::default())
                    .unary(method, request)
                    .await
            }
            _ => Status::unimplemented("there is no such method").into_http(),
        }
    }
}

/// Sends messages that are encoded already.
#[derive(Clone, Copy, Debug, Default)]
struct EncodedCodec;

impl Codec for EncodedCodec {
    type Encode = Bytes;
    type Decode = kv::WatchRequest;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for EncodedCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for EncodedCodec {
    type Item = kv::WatchRequest;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let request = kv::WatchRequest::decode(source);
        request
            .map(Some)
            .map_err(|e| Status::invalid_argument(e.to_string()))
    }
}
