//! Packets that flow all the time: marked ones to every address, and numbered ones between two.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use super::hosts::inside;
use super::tap::mark;

/// Time between two rounds of marked packets. Each packet costs the emulated processors some
/// two milliseconds on its way through two leaves and a spine; at 400 ms they took a third of them.
const ROUND: Duration = Duration::from_secs(1);
/// Time between two numbered packets.
const INTERVAL: Duration = Duration::from_millis(50);
/// Further targets: everybody of the segment, and the gateway.
const OTHERS: [&str; 2] = ["10.0.0.255", "169.254.1.1"];
/// Port that nobody listens on.
const MARKED: u16 = 9;
/// Port of the numbered packets.
const NUMBERED: u16 = 10;

/// The newest address of each machine of any tenant. It stays a target until the machine has another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets(Arc<Mutex<BTreeMap<u8, String>>>);

impl Targets {
    /// A machine has this address.
    pub(crate) fn add(&self, number: u8, address: &str) {
        let mut all = self.0.lock().unwrap();
        all.insert(number, address.to_owned());
    }

    /// Every address once: two tenants may have the same.
    fn all(&self) -> BTreeSet<String> {
        let all = self.0.lock().unwrap();
        let others = OTHERS.map(str::to_owned);
        all.values().cloned().chain(others).collect()
    }
}

/// Marked packets of one machine, to its drop.
pub(crate) struct Probes {
    tenant: Arc<Mutex<char>>,
    _stop: Sender<()>,
}

impl Probes {
    /// Sends to every target, as a machine that belongs to nobody.
    pub(crate) fn start(namespace: &str, number: u8, targets: &Targets) -> Self {
        let socket = inside(namespace, async || UdpSocket::bind("0.0.0.0:0").unwrap());
        socket.set_broadcast(true).unwrap();
        let targets = targets.clone();
        let tenant = Arc::new(Mutex::new('-'));
        let now = Arc::clone(&tenant);
        let (stop, stopped) = channel::<()>();
        std::thread::spawn(move || {
            use std::sync::mpsc::RecvTimeoutError::Timeout;
            while stopped.recv_timeout(ROUND) == Err(Timeout) {
                for target in targets.all() {
                    let mark = mark(*now.lock().unwrap(), number);
                    // Without a route nothing is sent.
                    socket
                        .send_to(mark.as_bytes(), (target.as_str(), MARKED))
                        .ok();
                }
            }
        });
        Self {
            tenant,
            _stop: stop,
        }
    }

    /// The machine belongs to this tenant from now on.
    pub(crate) fn belongs_to(&self, tenant: char) {
        *self.tenant.lock().unwrap() = tenant;
    }
}

/// Numbered packets from one machine to another.
pub(crate) struct Flow {
    pub(crate) name: String,
    began: SystemTime,
    received: Arc<Mutex<BTreeSet<u32>>>,
    stop: Option<Sender<()>>,
    sender: Option<JoinHandle<u32>>,
}

impl Flow {
    pub(crate) fn start(name: String, from: &str, to: &str, address: &str) -> Self {
        let received: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
        let receiver = inside(to, async || UdpSocket::bind(("0.0.0.0", NUMBERED)).unwrap());
        let numbers = Arc::clone(&received);
        std::thread::spawn(move || {
            let mut number = [0; 4];
            while receiver.recv(&mut number).is_ok() {
                numbers.lock().unwrap().insert(u32::from_be_bytes(number));
            }
        });
        let socket = inside(from, async || UdpSocket::bind("0.0.0.0:0").unwrap());
        let (stop, stopped) = channel::<()>();
        let target = address.to_owned();
        let sender = std::thread::spawn(move || {
            use std::sync::mpsc::RecvTimeoutError::Timeout;
            let started = Instant::now();
            for number in 0_u32.. {
                let due = started + INTERVAL * number;
                let wait = due.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(Timeout) {
                    return number;
                }
                // Not sent is lost.
                let sent = socket.send_to(&number.to_be_bytes(), (target.as_str(), NUMBERED));
                sent.ok();
            }
            0
        });
        Self {
            name,
            began: SystemTime::now(),
            received,
            stop: Some(stop),
            sender: Some(sender),
        }
    }

    /// The time at which a packet was sent, without what the sender was late.
    pub(crate) fn sent_at(&self, number: u32) -> SystemTime {
        self.began + INTERVAL * number
    }

    /// Numbers of packets sent, and of those that did not arrive. Packets under way get some time.
    pub(crate) fn end(&mut self) -> (u32, BTreeSet<u32>) {
        self.stop.take();
        let sender = self.sender.take().unwrap();
        let sent = sender.join().unwrap();
        let until = Instant::now() + Duration::from_secs(2);
        loop {
            let received = self.received.lock().unwrap();
            let lost: BTreeSet<u32> = (0..sent).filter(|n| !received.contains(n)).collect();
            drop(received);
            if lost.is_empty() || Instant::now() > until {
                return (sent, lost);
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}
