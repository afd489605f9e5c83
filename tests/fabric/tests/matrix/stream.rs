//! A stream of numbered packets, which shows how long a way is broken.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::hosts::inside;
use super::rack::Machine;

/// Time between two packets.
const INTERVAL: Duration = Duration::from_millis(10);
const PORT: u16 = 9;
/// Packets in a row after which a way works again.
const RUN: u32 = 100;

/// A stream from one machine to another, to its drop.
pub(crate) struct Stream {
    pub(crate) name: String,
    sent: Arc<Mutex<u32>>,
    received: Arc<Mutex<BTreeSet<u32>>>,
    _stop: Sender<()>,
}

impl Stream {
    pub(crate) fn start(from: &Machine, to: &Machine) -> Self {
        let sent = Arc::default();
        let received: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
        let receiver = inside(&to.namespace, async || {
            UdpSocket::bind(("0.0.0.0", PORT)).unwrap()
        });
        let numbers = Arc::clone(&received);
        std::thread::spawn(move || {
            let mut number = [0; 4];
            while receiver.recv(&mut number).is_ok() {
                numbers.lock().unwrap().insert(u32::from_be_bytes(number));
            }
        });
        let socket = inside(&from.namespace, async || {
            UdpSocket::bind(("0.0.0.0", 0)).unwrap()
        });
        let (stop, stopped) = channel();
        let target = to.address.clone();
        let counter = Arc::clone(&sent);
        std::thread::spawn(move || send(&socket, &target, &counter, &stopped));
        Self {
            name: format!("{} to {}", from.name, to.name),
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
fn send(socket: &UdpSocket, target: &str, sent: &Mutex<u32>, stopped: &Receiver<()>) {
    let started = Instant::now();
    let mut number: u32 = 0;
    loop {
        let due = started + INTERVAL * number;
        let wait = due.saturating_duration_since(Instant::now());
        if let Err(std::sync::mpsc::RecvTimeoutError::Disconnected) = stopped.recv_timeout(wait) {
            return;
        }
        // Not sent is lost: a machine without a route is as cut off as one without a cable.
        socket.send_to(&number.to_be_bytes(), (target, PORT)).ok();
        number += 1;
        *sent.lock().unwrap() = number;
    }
}
