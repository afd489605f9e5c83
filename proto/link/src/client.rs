//! The client: one handle for many calls over a session that is reopened when it is lost.

use std::future::Future;
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

use crate::client_config::{MeshClientConfig, SessionState};
use crate::dial::Socket;
use crate::frame::{self, FrameError, Header, Kind};
use crate::frames::Frames;
use crate::limits::{CALL_TIME, REQUEST_LEN_MAX, RESPONSE_LEN_MAX};
use crate::live::LiveSession;
use crate::method::MethodSpec;
use crate::notice::Notice;
use crate::open::{CallStream, OpenSession};
use crate::status::{Code, LinkStatus};
use crate::streaming::{Streaming, decode};
use crate::supervisor::{self, ClientShared};
use crate::transport;

/// Calls methods of control. Cheap to clone (`Arc`). Dropping the last clone ends the session.
#[derive(Clone, Debug)]
pub struct MeshClient {
    inner: Arc<ClientInner>,
    deadline: Duration,
}

#[derive(Debug)]
struct ClientInner {
    shared: Arc<ClientShared>,
    stop: CancellationToken,
    /// `true` if the client never dials.
    offline: bool,
    tasks: Mutex<JoinSet<()>>,
    _stop_on_drop: DropGuard,
}

impl MeshClient {
    /// Starts to dial in the background; must be called inside a tokio runtime.
    pub fn new(config: MeshClientConfig) -> Result<Self, LinkStatus> {
        Self::open_on(config, None)
    }

    /// A client that never dials: each call ends at once with [`Code::Unavailable`].
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

    /// Like [`Self::new`], from a socket that other sessions share.
    pub fn on(config: MeshClientConfig, socket: &Socket) -> Result<Self, LinkStatus> {
        Self::open_on(config, Some(socket.clone()))
    }

    fn open_on(config: MeshClientConfig, socket: Option<Socket>) -> Result<Self, LinkStatus> {
        if config.addresses.is_empty() {
            return Err(LinkStatus::invalid_argument(
                "the list of control addresses is empty",
            ));
        }
        let shared = shared(config)?;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(supervisor::run(shared.clone(), socket, stop.clone()));
        Ok(Self::of(shared, tasks, stop, false))
    }

    fn of(
        shared: Arc<ClientShared>,
        tasks: JoinSet<()>,
        stop: CancellationToken,
        offline: bool,
    ) -> Self {
        let inner = ClientInner {
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

    /// A handle on the same session with another deadline for its calls.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            inner: self.inner.clone(),
            deadline,
        }
    }

    /// Switches to a new certificate: opens a session with it, sends new calls there, and lets
    /// running unary calls finish on the old one. Streams end with [`Code::Unavailable`]; their
    /// owners reopen them.
    pub fn replace_tls(&self, tls: rustls::ClientConfig) -> Result<(), LinkStatus> {
        let keepalive = self.inner.shared.keepalive;
        let tls = transport::client(tls, keepalive).map_err(LinkStatus::internal)?;
        self.inner.shared.tls.send_replace(Arc::new(tls));
        Ok(())
    }

    /// Uses other addresses from the next dial on. An empty list is ignored.
    pub fn replace_addresses(&self, addresses: Vec<String>) {
        if !addresses.is_empty() {
            self.inner.shared.addresses.send_replace(addresses);
        }
    }

    /// Follows control's requests to renew the certificate with a new key.
    pub fn notices(&self) -> watch::Receiver<Notice> {
        self.inner.shared.notices.subscribe()
    }

    /// Follows the state of the session.
    pub fn state(&self) -> watch::Receiver<SessionState> {
        self.inner.shared.state.subscribe()
    }

    /// Closes the session and waits until the background task has ended.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }

    /// Sends one request and receives one answer. Waits for a session up to the deadline. A call
    /// that was sent when its session broke is not retried: only its caller knows whether the call
    /// is idempotent.
    pub async fn unary<Req: Message, Resp: Message + Default>(
        &self,
        method: &'static MethodSpec,
        request: &Req,
    ) -> Result<Resp, LinkStatus> {
        let end = Instant::now() + self.deadline;
        let request = frame::encode_message(request, REQUEST_LEN_MAX)?;
        // `call` is held to the end: it keeps a replaced session open until this call is over.
        let (
            mut stream,
            LiveSession {
                session,
                call: _call,
            },
        ) = self.open(end).await?;
        let keeps = session.kept.keeps();
        let CallStream { send, frames } = &mut stream;
        let work = async {
            write(&session, send, method.path, millis_until(end), request).await?;
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
        // Only after success: on any other way out the stream may hold a partial frame. Dropping it
        // sends STOP_SENDING, which cancels the call on the server.
        session.kept.put(stream);
        Ok(answer)
    }

    /// Sends one request and receives a stream of answers. The deadline covers only the sending of
    /// the request.
    pub async fn server_streaming<Req: Message, Resp: Message + Default>(
        &self,
        method: &'static MethodSpec,
        request: &Req,
    ) -> Result<Streaming<Resp>, LinkStatus> {
        let end = Instant::now() + self.deadline;
        let request = frame::encode_message(request, REQUEST_LEN_MAX)?;
        // The token is dropped on return: a stream does not hold off the drain of a replaced
        // session, or each watch would keep the old session open for the whole grace period.
        let (
            stream,
            LiveSession {
                session,
                call: _call,
            },
        ) = self.open(end).await?;
        let CallStream { mut send, frames } = stream;
        let work = write(&session, &mut send, method.path, 0, request);
        within(end, work).await?;
        finish(&mut send);
        Ok(Streaming::new(frames))
    }

    /// Takes or opens a stream on the current session; waits for a session until `end`.
    async fn open(&self, end: Instant) -> Result<(CallStream, LiveSession), LinkStatus> {
        if self.inner.offline {
            return Err(LinkStatus::unavailable(
                "this agent was started to work without control (--offline)",
            ));
        }
        let sessions = &self.inner.shared.session;
        loop {
            let current = LiveSession::of(&sessions.borrow());
            let live = match current {
                Some(live) => live,
                None => match timeout_at(end, LiveSession::next(sessions)).await {
                    Ok(Some(live)) => live,
                    Ok(None) => return Err(LinkStatus::cancelled("the client is closed")),
                    Err(_) => return Err(self.no_session()),
                },
            };
            // Held until the stream is open. As long as a call waits for the stream limit, others
            // close their streams instead of keeping them.
            let _opening = match live.session.kept.take() {
                Ok(stream) => return Ok((stream, live)),
                Err(opening) => opening,
            };
            match timeout_at(end, live.session.connection.open_bi()).await {
                Ok(Ok((send, recv))) => {
                    let stream = CallStream {
                        send,
                        frames: Frames::new(recv),
                    };
                    return Ok((stream, live));
                }
                // The session broke before anything was sent, so the call may use the next one.
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
    session.writes.wrote();
    match send.write_all_chunks(&mut [header, request]).await {
        Ok(()) => {}
        // The server may refuse a call without reading all of it. Its end frame has the reason;
        // an error here would hide it.
        Err(quinn::WriteError::Stopped(_)) => {}
        Err(e) => return Err(LinkStatus::unavailable(format!("session broke: {e}"))),
    }
    Ok(())
}

fn shared(config: MeshClientConfig) -> Result<Arc<ClientShared>, LinkStatus> {
    let tls = transport::client(config.tls, config.keepalive).map_err(LinkStatus::internal)?;
    Ok(Arc::new(ClientShared {
        session: watch::Sender::new(None),
        state: watch::Sender::new(SessionState::Down(None)),
        tls: watch::Sender::new(Arc::new(tls)),
        addresses: watch::Sender::new(config.addresses),
        notices: watch::Sender::new(Notice::default()),
        keepalive: config.keepalive,
    }))
}

/// Ends the sending half: no further call follows on this stream.
fn finish(send: &mut SendStream) {
    // Fails only on a stream that is closed already.
    drop(send.finish());
}

/// Reads the answer of a unary call. The message counts only with a successful end frame: a server
/// may fail after it has written one.
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

/// Milliseconds left until `end`, at least 1: 0 would mean the longest deadline on the wire.
fn millis_until(end: Instant) -> u32 {
    let left = end.saturating_duration_since(Instant::now()).as_millis();
    u32::try_from(left).unwrap_or(u32::MAX).max(1)
}
