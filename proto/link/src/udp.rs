//! The UDP socket as quinn asks it, for conversations that go to and fro without a pause.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use parking_lot::{Mutex, MutexGuard};
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio_util::sync::ReusableBoxFuture;
use tracing::debug;

/// A socket that knows how fast datagrams come.
#[derive(Debug)]
pub(crate) struct Udp {
    io: Arc<Watched>,
    state: UdpSocketState,
}

#[derive(Debug)]
struct Watched {
    socket: UdpSocket,
    rhythm: Mutex<Rhythm>,
}

thread_local! {
    /// The socket that this thread received from last.
    static LAST: RefCell<Weak<Watched>> = RefCell::default();
}

/// Busy polling: what a thread of a runtime does before it sleeps. It waits awake for the next
/// datagram, where those come so fast that this costs less than to be woken. What else the thread would be woken
/// for waits with it, for [`BUSY_POLL_MAX`] at most.
pub(crate) fn busy_poll() {
    let last = LAST.with_borrow(Weak::upgrade);
    if let Some(socket) = last {
        socket.busy_poll();
    }
}

impl Watched {
    fn rhythm(&self) -> MutexGuard<'_, Rhythm> {
        self.rhythm.lock()
    }

    fn busy_poll(&self) {
        let Some(until) = self.rhythm().busy_poll_until() else {
            return;
        };
        let mut wanted = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        while Instant::now() < until {
            // An error is for those to see who read from the socket.
            if !matches!(nix::poll::poll(&mut wanted, PollTimeout::ZERO), Ok(0)) {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Datagrams have come.
    fn came(self: &Arc<Self>) {
        self.rhythm().came(Instant::now());
        LAST.with_borrow_mut(|last| {
            if last.as_ptr() != Arc::as_ptr(self) {
                *last = Arc::downgrade(self);
            }
        });
    }
}

impl Udp {
    /// Must be called inside a tokio runtime.
    pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let io = Arc::new(Watched {
            socket: UdpSocket::from_std(socket)?,
            rhythm: Mutex::default(),
        });
        Ok(Self { io, state })
    }

    /// Receives once. What comes in fewer datagrams than there is room for has emptied the queue:
    /// the socket counts as not ready at once, without asking the system a second time.
    fn receive(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        let room = bufs.len().min(meta.len());
        let socket = &self.io.socket;
        let mut received = 0;
        let filled = socket.try_io(Interest::READABLE, || {
            received = self.state.recv(socket.into(), bufs, meta)?;
            if received < room {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match filled {
            Err(e) if received == 0 => Err(e),
            _ => Ok(received),
        }
    }
}

impl AsyncUdpSocket for Udp {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable::new(self.io.clone()))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let socket = &self.io.socket;
        socket.try_io(Interest::WRITABLE, || {
            self.state.send(socket.into(), transmit)
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.io.socket.poll_recv_ready(cx)?.is_pending() {
                self.io.rhythm().paused(Instant::now());
                return Poll::Pending;
            }
            match self.receive(bufs, meta) {
                Ok(received) => {
                    self.io.came();
                    return Poll::Ready(Ok(received));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // To quinn it would be the end of every session on this socket.
                Err(error) => {
                    debug!(%error, "nothing could be received");
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.socket.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }
}

/// Tells one session when the socket takes datagrams again: each needs a place of its own to wait.
struct Writable {
    io: Arc<Watched>,
    wait: ReusableBoxFuture<'static, io::Result<()>>,
    /// Whether it waits with `wait`: seldom, for a socket that is full.
    is_waiting: bool,
}

impl Writable {
    fn new(io: Arc<Watched>) -> Self {
        Self {
            wait: ReusableBoxFuture::new(Self::wait(io.clone())),
            io,
            is_waiting: false,
        }
    }

    async fn wait(io: Arc<Watched>) -> io::Result<()> {
        io.socket.writable().await
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable").finish_non_exhaustive()
    }
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.is_waiting {
            let socket = &this.io.socket;
            match socket.try_io(Interest::WRITABLE, || Ok(())) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                known => return Poll::Ready(known),
            }
            this.wait.set(Self::wait(this.io.clone()));
        }
        let writable = this.wait.poll(cx);
        this.is_waiting = writable.is_pending();
        writable
    }
}

/// A pause between datagrams up to which it is cheaper to stay awake: to fall asleep and to be
/// woken costs both ends more than a small call does.
const BUSY_POLL_MAX: Duration = Duration::from_micros(100);
/// A pause that was longer weighs so much more than one that was not ...
const LATE: u8 = 4;
/// ... so that a thread polls busily where four datagrams in five come in time.
const DOUBT_MAX: u8 = 8;

/// How fast datagrams come to a socket.
#[derive(Debug)]
struct Rhythm {
    /// Since when nothing has come.
    since: Option<Instant>,
    /// How often the last ones were late; begins as if all had been.
    doubt: u8,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self {
            since: None,
            doubt: DOUBT_MAX,
        }
    }
}

impl Rhythm {
    /// Nothing is there.
    fn paused(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Until when to wait awake, if that pays.
    fn busy_poll_until(&self) -> Option<Instant> {
        let since = self.since.filter(|_| self.doubt < DOUBT_MAX)?;
        Some(since + BUSY_POLL_MAX)
    }

    /// Datagrams have come.
    fn came(&mut self, now: Instant) {
        let Some(since) = self.since.take() else {
            return;
        };
        self.doubt = if now.duration_since(since) < BUSY_POLL_MAX {
            self.doubt.saturating_sub(1)
        } else {
            (self.doubt + LATE).min(DOUBT_MAX)
        };
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    const LONG: Duration = Duration::from_millis(20);

    /// Datagrams after these pauses; whether a thread polls busily for the next.
    fn busy_polls(rhythm: &mut Rhythm, now: &mut Instant, pauses: &[Duration]) -> bool {
        for pause in pauses {
            rhythm.paused(*now);
            // Looked at again in between, as quinn does.
            rhythm.paused(*now + *pause / 2);
            *now += *pause;
            rhythm.came(*now);
        }
        rhythm.paused(*now);
        let until = rhythm.busy_poll_until();
        assert!(
            until.is_none_or(|it| it == *now + BUSY_POLL_MAX),
            "{until:?}"
        );
        until.is_some()
    }

    #[test]
    fn a_thread_polls_busily_where_most_datagrams_come_at_once() {
        let (mut rhythm, mut now) = (Rhythm::default(), Instant::now());
        for (pauses, expected) in [
            (vec![], false),
            (vec![LONG; 5], false),
            (vec![SHORT], true),
            // One that was late is forgiven after some that were not.
            (vec![SHORT; 20], true),
            (vec![LONG], true),
            (vec![LONG], false),
            (vec![SHORT; 20], true),
            ([LONG, SHORT, SHORT, SHORT, SHORT].repeat(9), true),
            ([SHORT, LONG, SHORT, LONG, LONG].repeat(9), false),
        ] {
            assert_eq!(
                busy_polls(&mut rhythm, &mut now, &pauses),
                expected,
                "{pauses:?}"
            );
        }
    }

    #[test]
    fn nobody_polls_busily_once_something_is_there() {
        let (mut rhythm, mut now) = (Rhythm::default(), Instant::now());
        assert!(busy_polls(&mut rhythm, &mut now, &[SHORT; 9]));
        rhythm.came(now);
        assert_eq!(rhythm.busy_poll_until(), None);
    }

    /// Receives so many datagrams; each must be waited for at most as long as a test may take.
    async fn receive(udp: &Udp, count: usize) {
        let mut room = vec![[0u8; 64]; quinn::udp::BATCH_SIZE];
        let mut meta = [RecvMeta::default(); quinn::udp::BATCH_SIZE];
        let mut received = 0;
        while received < count {
            let batch = poll_fn(|cx| {
                let mut bufs: Vec<IoSliceMut<'_>> =
                    room.iter_mut().map(|it| IoSliceMut::new(it)).collect();
                udp.poll_recv(cx, &mut bufs, &mut meta)
            });
            let batch = tokio::time::timeout(Duration::from_secs(20), batch).await;
            let datagrams = batch.unwrap().unwrap();
            let parts = |it: &RecvMeta| it.len.div_ceil(it.stride.max(1));
            received += meta.iter().take(datagrams).map(parts).sum::<usize>();
        }
        assert_eq!(received, count);
    }

    #[tokio::test]
    async fn no_datagram_is_left_behind_whether_a_batch_is_full_or_not() {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let to = socket.local_addr().unwrap();
        let udp = Udp::new(socket).unwrap();
        let from = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let batch = quinn::udp::BATCH_SIZE;
        for count in [1, batch - 1, batch, batch + 1, 3 * batch, 1, 1] {
            let sent = (0..count).map(|_| from.send_to(&[7; 20], to).unwrap());
            assert_eq!(sent.sum::<usize>(), 20 * count);
            receive(&udp, count).await;
        }
    }

    #[tokio::test]
    async fn who_asks_again_hears_again_that_a_socket_takes_datagrams() {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut writable = Arc::new(Udp::new(socket).unwrap()).create_io_poller();
        for _ in 0..3 {
            let wait = poll_fn(|cx| writable.as_mut().poll_writable(cx));
            let wait = tokio::time::timeout(Duration::from_secs(20), wait).await;
            wait.unwrap().unwrap();
        }
    }
}
