//! A stream of numbered packets, which shows how long a way is broken.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::daemons::DEADLINE;
use super::hosts::inside;

/// Time between two packets.
const INTERVAL: Duration = Duration::from_millis(10);
/// Port that the first stream goes to; each has its own.
const PORT: u16 = 1000;
/// Packets that show over which cable a port's packets go: more than daemons send meanwhile.
const TRIES: u64 = 30;
/// Ports that a stream over a certain cable may come from.
const SOURCES: std::ops::Range<u16> = 40_000..40_100;
/// Packets in a row after which a way works again.
const RUN: u32 = 100;

/// A machine as an end of a stream.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) address: String,
}

/// A stream from one machine to another, to its drop.
pub(crate) struct Stream {
    pub(crate) name: String,
    sent: Arc<Mutex<u32>>,
    received: Arc<Mutex<BTreeSet<u32>>>,
    _stop: Sender<()>,
}

impl Stream {
    /// Starts the stream `number` between two machines. `cable` is the one that it leaves by, of a
    /// sender with BGP, which shares its streams among all.
    pub(crate) fn start(number: u16, from: &End, to: &End, cable: Option<&str>) -> Self {
        let port = PORT + number;
        let source = cable.map_or(0, |cable| source_port(from, to, port, cable));
        let sent = Arc::default();
        let received: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
        let receiver = inside(&to.namespace, async move || {
            UdpSocket::bind(("0.0.0.0", port)).unwrap()
        });
        let numbers = Arc::clone(&received);
        std::thread::spawn(move || {
            let mut number = [0; 4];
            while receiver.recv(&mut number).is_ok() {
                numbers.lock().unwrap().insert(u32::from_be_bytes(number));
            }
        });
        let socket = inside(&from.namespace, async move || {
            UdpSocket::bind(("0.0.0.0", source)).unwrap()
        });
        let (stop, stopped) = channel();
        let target = (to.address.clone(), port);
        let counter = Arc::clone(&sent);
        std::thread::spawn(move || send(&socket, &target, &counter, &stopped));
        Self {
            name: format!("{} to {} {}", from.name, to.name, cable.unwrap_or("")),
            sent,
            received,
            _stop: stop,
        }
    }

    /// Number of the next packet.
    pub(crate) fn now(&self) -> u32 {
        *self.sent.lock().unwrap()
    }

    /// `true` if the last packets have arrived, all of them after the packet `since`. The very
    /// last may be on their way.
    pub(crate) fn works(&self, since: u32) -> bool {
        let last = self.now().saturating_sub(20);
        let received = self.received.lock().unwrap();
        last >= since + RUN && received.range(last - RUN..last).count() == RUN as usize
    }

    /// Time that the packets from `since` to `until` which have not arrived stand for.
    pub(crate) fn loss(&self, since: u32, until: u32) -> Duration {
        let arrived = self.received.lock().unwrap().range(since..until).count();
        let lost = (until - since) - u32::try_from(arrived).unwrap();
        INTERVAL * lost
    }
}

/// Sends at the times of a clock, not at intervals: a late packet does not delay the others, and a
/// number stands for a time.
fn send(socket: &UdpSocket, target: &(String, u16), sent: &Mutex<u32>, stopped: &Receiver<()>) {
    let started = Instant::now();
    let mut number: u32 = 0;
    loop {
        let due = started + INTERVAL * number;
        let wait = due.saturating_duration_since(Instant::now());
        if let Err(std::sync::mpsc::RecvTimeoutError::Disconnected) = stopped.recv_timeout(wait) {
            return;
        }
        // Not sent is lost: a machine without a route is as cut off as one without a cable.
        let (address, port) = target;
        socket
            .send_to(&number.to_be_bytes(), (address.as_str(), *port))
            .ok();
        number += 1;
        *sent.lock().unwrap() = number;
    }
}

/// A port whose packets the kernel of a machine sends over a cable: found by sending some.
fn source_port(from: &End, to: &End, port: u16, cable: &str) -> u16 {
    let until = Instant::now() + DEADLINE;
    for source in SOURCES.cycle() {
        let (target, device) = (to.address.clone(), cable.to_owned());
        let goes_there = inside(&from.namespace, async move || {
            // Another stream of the machine may have it.
            let Ok(socket) = UdpSocket::bind(("0.0.0.0", source)) else {
                return false;
            };
            let before = sent_over(&device);
            for _ in 0..TRIES {
                socket.send_to(b"?", (target.as_str(), port)).unwrap();
            }
            sent_over(&device) >= before + TRIES
        });
        if goes_there {
            return source;
        }
        let is_early = Instant::now() < until;
        assert!(is_early, "{} sends nothing over {cable}", from.name);
    }
    unreachable!("the ports come again and again")
}

/// Packets that were sent over a device of the thread's namespace.
fn sent_over(device: &str) -> u64 {
    let all = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let mut devices = all.lines().filter_map(|line| line.split_once(':'));
    let (_, counters) = devices.find(|(name, _)| name.trim() == device).unwrap();
    // Eight counters of received packets; then bytes and packets that were sent.
    counters.split_whitespace().nth(9).unwrap().parse().unwrap()
}
