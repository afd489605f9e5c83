//! quinn's UDP socket, with busy polling for calls that follow each other without a pause.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use parking_lot::{Mutex, MutexGuard};
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio_util::sync::ReusableBoxFuture;
use tracing::debug;

use crate::rhythm::ArrivalRhythm;

/// A socket that measures how fast datagrams come.
#[derive(Debug)]
pub(crate) struct Udp {
    io: Arc<WatchedSocket>,
    state: UdpSocketState,
}

#[derive(Debug)]
struct WatchedSocket {
    socket: UdpSocket,
    rhythm: Mutex<ArrivalRhythm>,
}

thread_local! {
    /// The socket that this thread received from last.
    static LAST: RefCell<Weak<WatchedSocket>> = RefCell::default();
}

/// Polls the thread's last socket before the thread sleeps, if datagrams come so fast that this
/// costs less than a wake-up. Other events of the thread wait meanwhile, at most [`BUSY_POLL_MAX`].
pub(crate) fn busy_poll() {
    let last = LAST.with_borrow(Weak::upgrade);
    if let Some(socket) = last {
        socket.busy_poll();
    }
}

impl WatchedSocket {
    fn rhythm(&self) -> MutexGuard<'_, ArrivalRhythm> {
        self.rhythm.lock()
    }

    fn busy_poll(&self) {
        let Some(until) = self.rhythm().busy_poll_until() else {
            return;
        };
        let mut wanted = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        while Instant::now() < until {
            // A readable socket or an error ends the poll. The next receive reports the error.
            if !matches!(nix::poll::poll(&mut wanted, PollTimeout::ZERO), Ok(0)) {
                return;
            }
            // On a host with few cores the sender of the next datagram may need this one.
            std::thread::yield_now();
        }
    }

    /// Takes note of an arrival.
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
        let io = Arc::new(WatchedSocket {
            socket: UdpSocket::from_std(socket)?,
            rhythm: Mutex::default(),
        });
        Ok(Self { io, state })
    }

    /// Receives one batch.
    fn receive(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        let room = bufs.len().min(meta.len());
        let socket = &self.io.socket;
        let mut received = 0;
        let filled = socket.try_io(Interest::READABLE, || {
            received = self.state.recv(socket.into(), bufs, meta)?;
            // A batch that is not full has emptied the kernel's queue. `WouldBlock` marks the socket
            // as not ready now and saves a second system call that would find nothing.
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
        Box::pin(WritableWait::new(self.io.clone()))
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
                // The receive has cleared the readiness: the next pass registers the waker.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // quinn takes an error as the end of the endpoint and of every session on it. An
                // ICMP error or a moment without memory must not cause that.
                Err(error) => {
                    debug!(%error, "receive failed");
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

/// Wakes one session when the socket accepts datagrams again. tokio keeps one waker per direction
/// for direct polls, so each session needs a future of its own.
struct WritableWait {
    io: Arc<WatchedSocket>,
    wait: ReusableBoxFuture<'static, io::Result<()>>,
    /// `true` while `wait` is in use: rarely, when the socket's send buffer is full.
    is_waiting: bool,
}

impl WritableWait {
    fn new(io: Arc<WatchedSocket>) -> Self {
        Self {
            wait: ReusableBoxFuture::new(Self::wait(io.clone())),
            io,
            is_waiting: false,
        }
    }

    async fn wait(io: Arc<WatchedSocket>) -> io::Result<()> {
        io.socket.writable().await
    }
}

impl fmt::Debug for WritableWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritableWait").finish_non_exhaustive()
    }
}

impl UdpPoller for WritableWait {
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    /// Receives so many datagrams; each must be waited for at most as long as a test may take.
    async fn receive(udp: &Udp, count: usize) {
        let mut room = vec![[0u8; 64]; quinn::udp::BATCH_SIZE];
        let mut meta = [RecvMeta::default(); quinn::udp::BATCH_SIZE];
        let mut received = 0;
        while received < count {
            let batch = poll_fn(|cx| {
                let mut bufs: Vec<IoSliceMut<'_>> = room
                    .iter_mut()
                    .map(|buffer| IoSliceMut::new(buffer))
                    .collect();
                udp.poll_recv(cx, &mut bufs, &mut meta)
            });
            let batch = tokio::time::timeout(Duration::from_secs(20), batch).await;
            let datagrams = batch.unwrap().unwrap();
            let parts = |meta: &RecvMeta| meta.len.div_ceil(meta.stride.max(1));
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
