//! The caller's side: one handle, many calls, a session that comes back by itself.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use quinn::SendStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::dial::{DialError, Socket};
use crate::frame::{self, FrameError, Header, Kind};
use crate::frames::Frames;
use crate::limits::{CALL_TIME, REQUEST_LEN_MAX, RESPONSE_LEN_MAX};
use crate::method::MethodSpec;
use crate::notice::Notice;
use crate::open::{CallStream, OpenSession};
use crate::status::{Code, LinkStatus};
use crate::supervisor::{self, Shared};
use crate::transport::{self, Keepalive};

/// What a client needs.
#[derive(Debug)]
pub struct MeshClientConfig {
    /// Control nodes, host:port; tried in turn.
    pub addresses: Vec<String>,
    /// From [`proto_identity::tls::client_config`] with [`crate::ALPN`].
    pub tls: rustls::ClientConfig,
    /// How soon a dead node is to be noticed.
    pub keepalive: Keepalive,
}

impl MeshClientConfig {
    /// A prompt client.
    pub fn new(addresses: Vec<String>, tls: rustls::ClientConfig) -> Self {
        Self {
            addresses,
            tls,
            keepalive: Keepalive::default(),
        }
    }
}

/// Whether there is a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// There is one.
    Up,
    /// There is none, and the last reason; before the first attempt none.
    Down(Option<DialError>),
    /// The client was closed.
    Closed,
}

/// Calls methods of control. Cheap to clone; the last clone's drop ends the session.
#[derive(Clone, Debug)]
pub struct MeshClient {
    inner: Arc<Inner>,
    deadline: Duration,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    stop: CancellationToken,
    /// Nobody is dialled, ever.
    offline: bool,
    tasks: Mutex<JoinSet<()>>,
    _stop_on_drop: DropGuard,
}

impl MeshClient {
    /// Begins to dial in the background; must be called inside a tokio runtime.
    pub fn new(config: MeshClientConfig) -> Result<Self, LinkStatus> {
        Self::open_on(config, None)
    }

    /// A client that dials nobody: each call ends at once with [`Code::Unavailable`].
    pub fn offline(config: MeshClientConfig) -> Result<Self, LinkStatus> {
        let shared = shared(config)?;
        shared.state.send_replace(SessionState::Closed);
        Ok(Self::of(
            shared,
            JoinSet::new(),
            CancellationToken::new(),
            true,
        ))
    }

    /// The same from a socket that other sessions share.
    pub fn on(config: MeshClientConfig, socket: &Socket) -> Result<Self, LinkStatus> {
        Self::open_on(config, Some(socket.clone()))
    }

    fn open_on(config: MeshClientConfig, socket: Option<Socket>) -> Result<Self, LinkStatus> {
        if config.addresses.is_empty() {
            return Err(LinkStatus::invalid_argument(
                "no address of control is known",
            ));
        }
        let shared = shared(config)?;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(supervisor::run(shared.clone(), socket, stop.clone()));
        Ok(Self::of(shared, tasks, stop, false))
    }

    fn of(shared: Arc<Shared>, tasks: JoinSet<()>, stop: CancellationToken, offline: bool) -> Self {
        let inner = Inner {
            shared,
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            offline,
            tasks: Mutex::new(tasks),
        };
        Self {
            inner: Arc::new(inner),
            deadline: CALL_TIME,
        }
    }

    /// The same session with another deadline for its calls.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            inner: self.inner.clone(),
            deadline,
        }
    }

    /// Takes a new certificate: opens a session with it, moves new calls there, lets running
    /// unary calls finish on the old one. Streams end with [`Code::Unavailable`] and are opened
    /// anew by their owners.
    pub fn replace_tls(&self, tls: rustls::ClientConfig) -> Result<(), LinkStatus> {
        let keepalive = self.inner.shared.keepalive;
        let tls = transport::client(tls, keepalive).map_err(LinkStatus::internal)?;
        self.inner.shared.tls.send_replace(Arc::new(tls));
        Ok(())
    }

    /// Uses other addresses from the next dial on.
    pub fn replace_addresses(&self, addresses: Vec<String>) {
        if !addresses.is_empty() {
            self.inner.shared.addresses.send_replace(addresses);
        }
    }

    /// Follows whether control wants another key of us.
    pub fn notices(&self) -> watch::Receiver<Notice> {
        self.inner.shared.notices.subscribe()
    }

    /// Follows whether there is a session.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.inner.shared.state.subscribe()
    }

    /// Ends the session and tells the other side.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }

    /// One request, one answer. Waits for a session up to the deadline. A call that was sent
    /// when its session broke is not repeated: only the caller knows whether it may be.
    pub async fn unary<Req: Message, Resp: Message + Default>(
        &self,
        method: &'static MethodSpec,
        request: &Req,
    ) -> Result<Resp, LinkStatus> {
        let end = Instant::now() + self.deadline;
        let request = frame::encode_message(request, REQUEST_LEN_MAX)?;
        let (mut stream, (session, _call)) = self.open(end).await?;
        let keeps = session.kept.keeps();
        let CallStream { send, frames } = &mut stream;
        let work = async {
            write(&session, send, method.path, until(end), request).await?;
            if !keeps {
                finish(send);
            }
            let answer = one_answer(frames).await?;
            if !keeps {
                frames.see_end().await;
            }
            Ok(answer)
        };
        let answer = within(end, work).await?;
        session.kept.put(stream);
        Ok(answer)
    }

    /// One request, a stream of answers. The deadline is for its begin only.
    pub async fn server_streaming<Req: Message, Resp: Message + Default>(
        &self,
        method: &'static MethodSpec,
        request: &Req,
    ) -> Result<Streaming<Resp>, LinkStatus> {
        let end = Instant::now() + self.deadline;
        let request = frame::encode_message(request, REQUEST_LEN_MAX)?;
        let (stream, (session, _call)) = self.open(end).await?;
        let CallStream { mut send, frames } = stream;
        let work = write(&session, &mut send, method.path, 0, request);
        within(end, work).await?;
        finish(&mut send);
        Ok(Streaming {
            frames,
            over: false,
            message: PhantomData,
        })
    }

    /// A stream on the current session, waiting for one until `end`, and the session, where the
    /// stream is kept afterwards.
    async fn open(&self, end: Instant) -> Result<(CallStream, Live), LinkStatus> {
        if self.inner.offline {
            return Err(LinkStatus::unavailable(
                "this agent was started to work without control (--offline)",
            ));
        }
        let sessions = &self.inner.shared.session;
        loop {
            let now = live(&sessions.borrow());
            let (session, call) = match now {
                Some(live) => live,
                None => match timeout_at(end, next_live(sessions)).await {
                    Ok(Some(live)) => live,
                    Ok(None) => return Err(LinkStatus::cancelled("the client is closed")),
                    Err(_) => return Err(self.no_session()),
                },
            };
            let _opening = match session.kept.take() {
                Ok(stream) => return Ok((stream, (session, call))),
                Err(opening) => opening,
            };
            match timeout_at(end, session.connection.open_bi()).await {
                Ok(Ok((send, recv))) => {
                    let stream = CallStream {
                        send,
                        frames: Frames::new(recv),
                    };
                    return Ok((stream, (session, call)));
                }
                // Nothing was sent: the next session will do.
                Ok(Err(_)) => {}
                Err(_) => return Err(LinkStatus::deadline_exceeded("too many calls in flight")),
            }
        }
    }

    fn no_session(&self) -> LinkStatus {
        match &*self.inner.shared.state.borrow() {
            SessionState::Down(Some(e)) => {
                LinkStatus::unavailable(format!("no session with control: {e}"))
            }
            _ => LinkStatus::unavailable("no session with control"),
        }
    }
}

async fn write(
    session: &OpenSession,
    send: &mut SendStream,
    path: &str,
    deadline_ms: u32,
    request: Bytes,
) -> Result<(), LinkStatus> {
    let header = frame::encode_header(&Header {
        method: path,
        deadline_ms,
    })?;
    session.turns.wrote();
    match send.write_all_chunks(&mut [header, request]).await {
        Ok(()) => {}
        // The server may have answered without reading all: the answer says why.
        Err(quinn::WriteError::Stopped(_)) => {}
        Err(e) => return Err(LinkStatus::unavailable(format!("session broke: {e}"))),
    }
    Ok(())
}

fn shared(config: MeshClientConfig) -> Result<Arc<Shared>, LinkStatus> {
    let tls = transport::client(config.tls, config.keepalive).map_err(LinkStatus::internal)?;
    Ok(Arc::new(Shared {
        session: watch::Sender::new(None),
        state: watch::Sender::new(SessionState::Down(None)),
        tls: watch::Sender::new(Arc::new(tls)),
        addresses: watch::Sender::new(config.addresses),
        notices: watch::Sender::new(Notice::default()),
        keepalive: config.keepalive,
    }))
}

/// A session, with a token that holds off its drain.
type Live = (Arc<OpenSession>, TaskTrackerToken);

/// The session if it is still open. The token is taken while the watch is borrowed: a session is
/// drained only after it was replaced there.
fn live(session: &Option<Arc<OpenSession>>) -> Option<Live> {
    let session = session.as_ref()?;
    let is_open = session.connection.close_reason().is_none();
    is_open.then(|| (session.clone(), session.calls.token()))
}

/// Waits for a session that is open.
async fn next_live(sessions: &watch::Sender<Option<Arc<OpenSession>>>) -> Option<Live> {
    let mut sessions = sessions.subscribe();
    loop {
        if let Some(live) = live(&sessions.borrow_and_update()) {
            return Some(live);
        }
        sessions.changed().await.ok()?;
    }
}

/// No further call comes on this stream.
fn finish(send: &mut SendStream) {
    // Fails only on a stream that is closed already.
    drop(send.finish());
}

/// The one message of an answer, once the answer has ended well.
async fn one_answer<Resp: Message + Default>(frames: &mut Frames) -> Result<Resp, LinkStatus> {
    let (kind, payload) = frames.next(RESPONSE_LEN_MAX).await?;
    match kind {
        Kind::Message => {
            let answer = decode(&payload)?;
            let (kind, payload) = frames.next(0).await?;
            if kind != Kind::End {
                return Err(FrameError::Unexpected.into());
            }
            frame::decode_end(&payload)??;
            Ok(answer)
        }
        Kind::End => match frame::decode_end(&payload)? {
            Ok(()) => Err(LinkStatus::internal("the answer is missing")),
            Err(status) => Err(status),
        },
        Kind::Header => Err(FrameError::Unexpected.into()),
    }
}

async fn within<T>(
    end: Instant,
    work: impl Future<Output = Result<T, LinkStatus>>,
) -> Result<T, LinkStatus> {
    timeout_at(end, work)
        .await
        .map_err(|_| LinkStatus::new(Code::DeadlineExceeded, "no answer in time"))?
}

fn until(end: Instant) -> u32 {
    let left = end.saturating_duration_since(Instant::now()).as_millis();
    u32::try_from(left).unwrap_or(u32::MAX).max(1)
}

fn decode<M: Message + Default>(payload: &[u8]) -> Result<M, LinkStatus> {
    M::decode(payload).map_err(|_| LinkStatus::internal("the answer does not decode"))
}

/// Answers of one call. Dropping it cancels the call on the other side.
#[derive(Debug)]
pub struct Streaming<M> {
    frames: Frames,
    over: bool,
    message: PhantomData<fn() -> M>,
}

impl<M: Message + Default> Streaming<M> {
    /// The next answer; `None` once the other side ended the stream well. Loses nothing when
    /// the future is dropped before it is done.
    pub async fn message(&mut self) -> Result<Option<M>, LinkStatus> {
        let answer = self.read_on().await?;
        Ok(answer.map(|(message, _)| message))
    }

    /// The same with the bytes that it was read from, for who keeps it as it came.
    pub async fn message_and_bytes(&mut self) -> Result<Option<(M, Bytes)>, LinkStatus> {
        let answer = self.read_on().await?;
        // What is kept must not keep what arrived with it.
        Ok(answer.map(|(message, bytes)| (message, Bytes::copy_from_slice(&bytes))))
    }

    async fn read_on(&mut self) -> Result<Option<(M, Bytes)>, LinkStatus> {
        if self.over {
            return Ok(None);
        }
        let answer = self.read().await;
        self.over = !matches!(answer, Ok(Some(_)));
        answer
    }

    async fn read(&mut self) -> Result<Option<(M, Bytes)>, LinkStatus> {
        let (kind, payload) = self.frames.next(RESPONSE_LEN_MAX).await?;
        match kind {
            Kind::Message => Ok(Some((decode(&payload)?, payload))),
            Kind::End => frame::decode_end(&payload)?.map(|()| None),
            Kind::Header => Err(FrameError::Unexpected.into()),
        }
    }
}
