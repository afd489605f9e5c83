//! Finds the service of a method and decides whether the caller may use it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use proto_identity::CallerKind;

use crate::frame;
use crate::limits::RESPONSE_LEN_MAX;
use crate::method::MethodSpec;
use crate::runtime::Turns;
use crate::session::Peer;
use crate::status::LinkStatus;

/// What a service's `call` returns.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<(), LinkStatus>> + Send + 'a>>;

/// Generated `XServer`s implement this.
pub trait Service: Send + Sync + 'static {
    /// Its methods.
    fn methods(&self) -> &'static [&'static MethodSpec];

    /// Serves one call of one of its methods. Dropped when the caller gives up.
    fn call<'a>(
        &'a self,
        method: &'static MethodSpec,
        peer: &'a Peer,
        request: Bytes,
        out: &'a mut Responder,
    ) -> CallFuture<'a>;
}

/// The services of one server.
#[derive(Clone, Default)]
pub struct Router {
    methods: BTreeMap<&'static str, (&'static MethodSpec, Arc<dyn Service>)>,
}

impl Router {
    /// No service yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service.
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "a builder's word, as in `tonic`"
    )]
    pub fn add(mut self, service: impl Service) -> Self {
        let service: Arc<dyn Service> = Arc::new(service);
        for spec in service.methods() {
            self.methods.insert(spec.path, (spec, service.clone()));
        }
        self
    }

    /// Every method, by path.
    pub fn methods(&self) -> impl Iterator<Item = &'static MethodSpec> + '_ {
        self.methods.values().map(|(spec, _)| *spec)
    }

    /// The one place where a caller's kind is held against a method's `callers`.
    pub fn admit(
        &self,
        path: &str,
        caller: CallerKind,
    ) -> Result<(&'static MethodSpec, &dyn Service), LinkStatus> {
        // Callers without a certificate learn nothing on which methods exist.
        let refused = || match caller {
            CallerKind::Anonymous => LinkStatus::unauthenticated("a certificate is needed"),
            _ => LinkStatus::permission_denied("not for this kind of caller"),
        };
        match self.methods.get(path) {
            Some((spec, service)) if spec.callers.contains(&caller) => Ok((spec, service.as_ref())),
            Some(_) => Err(refused()),
            None if caller == CallerKind::Anonymous => Err(refused()),
            None => Err(LinkStatus::unimplemented("no such method")),
        }
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods.keys()).finish()
    }
}

/// Where answers of one call go.
#[derive(Debug)]
pub struct Responder {
    stream: quinn::SendStream,
    turns: Turns,
    /// A write was begun and did not end: no further frame can follow.
    torn: bool,
    /// The one answer waits for the end of the call, so that both go out together.
    holds: bool,
    held: Option<Bytes>,
}

impl Responder {
    pub(crate) fn new(stream: quinn::SendStream, turns: Turns) -> Self {
        Self {
            stream,
            turns,
            torn: false,
            holds: false,
            held: None,
        }
    }

    /// Whether the method of the call that begins answers with one message or with a stream. The
    /// call before on the same stream may have been of the other kind.
    pub(crate) fn expect(&mut self, is_streaming: bool) {
        self.holds = !is_streaming;
    }

    /// Sends one message; waits while the caller does not read.
    pub async fn send(&mut self, message: &impl prost::Message) -> Result<(), LinkStatus> {
        let frame = frame::encode_message(message, RESPONSE_LEN_MAX)?;
        if self.holds {
            self.held = Some(frame);
            return Ok(());
        }
        self.write(&mut [frame]).await
    }

    /// Ends an answer, and with `last` the stream; whether another call may follow.
    pub(crate) async fn end(&mut self, end: &Result<(), LinkStatus>, last: bool) -> bool {
        if self.torn {
            self.abandon();
            return false;
        }
        let answer = self.held.take().unwrap_or_default();
        let written = self.write(&mut [answer, frame::encode_end(end)]).await;
        if last && written.is_ok() {
            // Fails only on a stream that is closed already.
            drop(self.stream.finish());
        }
        !last && written.is_ok()
    }

    /// Returns once the caller wants no answer.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let stopped = self.stream.stopped();
        async move { drop(stopped.await) }
    }

    pub(crate) fn abandon(&mut self) {
        drop(self.stream.reset(quinn::VarInt::from_u32(1)));
    }

    async fn write(&mut self, frames: &mut [Bytes]) -> Result<(), LinkStatus> {
        self.torn = true;
        self.turns.wrote();
        self.stream
            .write_all_chunks(frames)
            .await
            .map_err(|_| LinkStatus::cancelled("the caller is gone"))?;
        self.torn = false;
        Ok(())
    }
}

/// Decodes a request; generated code calls it.
pub fn decode_request<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, LinkStatus> {
    M::decode(bytes).map_err(|_| LinkStatus::invalid_argument("the request does not decode"))
}

/// A typed [`Responder`] for streams of `M`.
#[derive(Debug)]
pub struct Sink<'a, M> {
    out: &'a mut Responder,
    message: PhantomData<fn(M)>,
}

impl<'a, M: prost::Message> Sink<'a, M> {
    /// Generated code makes it.
    pub fn new(out: &'a mut Responder) -> Self {
        Self {
            out,
            message: PhantomData,
        }
    }

    /// Sends one message; waits while the caller does not read; fails once the caller is gone.
    pub async fn send(&mut self, message: &M) -> Result<(), LinkStatus> {
        self.out.send(message).await
    }
}
