//! LLDP in both directions: hears the switch port of each interface, and announces the machine to
//! the switch.
//!
//! A frame is a hint for wiring, never a proof of identity. Listening starts as soon as the
//! interfaces are up and continues while the machine joins, so that it adds little waiting time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proto_wire_lldp::{Frame, Socket};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::net::links::{Link, has_carrier};

/// Interval between own frames. A switch that sees a new neighbour answers at once
/// (IEEE 802.1AB §9.2.5.7), so a frame that was lost while the port came up is soon repeated.
const SEND_EVERY: Duration = Duration::from_secs(5);
/// Time to live of own frames, seconds: four intervals. The switch forgets the machine after it.
const TTL_S: u16 = 20;
/// Neighbours kept per interface; further ones are ignored. Only a hub or a bridge that forwards
/// LLDP shows more than one.
const NEIGHBOURS_MAX: usize = 8;

/// Received frames by interface name.
type Heard = BTreeMap<String, Vec<Frame>>;

/// Listens and announces until it is dropped.
#[derive(Debug)]
pub struct Lldp {
    heard: Arc<Mutex<Heard>>,
    news: Arc<Notify>,
    started: Instant,
    interfaces: Vec<String>,
    _tasks: JoinSet<()>,
}

impl Lldp {
    /// Starts on all `links`. `uuid` becomes the chassis id and the system name in own frames.
    #[must_use]
    pub fn spawn(links: &[Link], uuid: &str) -> Self {
        let heard = Arc::new(Mutex::new(Heard::new()));
        let news = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        for link in links {
            let own = Frame {
                source: link.mac.0,
                chassis_id: uuid.to_string(),
                port_id: link.name.clone(),
                system_name: uuid.to_string(),
                system_description: concat!("metalmesh-hammer ", env!("CARGO_PKG_VERSION")).into(),
                ttl_s: TTL_S,
            };
            let frame = own.encode();
            tasks.spawn(run(link.clone(), frame, heard.clone(), news.clone()));
        }
        Self {
            heard,
            news,
            started: Instant::now(),
            interfaces: links.iter().map(|l| l.name.clone()).collect(),
            _tasks: tasks,
        }
    }

    /// Waits until every interface with a cable has a neighbour, or `limit` after the start.
    pub async fn wait(&self, limit: Duration) {
        let deadline = self.started + limit;
        loop {
            // Before the look at the map: a frame between look and wait would be missed otherwise.
            let changed = self.news.notified();
            let heard = self.neighbours();
            // The carriers are read in each pass: a port that came up late is waited for too.
            let mut wired = self.interfaces.iter().filter(|n| has_carrier(n));
            if wired.all(|n| heard.contains_key(n)) {
                return;
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }

    /// The frames received so far.
    #[must_use]
    pub fn neighbours(&self) -> Heard {
        self.heard.lock().clone()
    }
}

async fn run(link: Link, frame: Vec<u8>, heard: Arc<Mutex<Heard>>, news: Arc<Notify>) {
    let socket = match Socket::open(&link.name) {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(nic = link.name, %error, "cannot open LLDP socket"),
    };
    let mut tick = tokio::time::interval(SEND_EVERY);
    // By default missed ticks follow at once: after a stall the switch would get a burst of equal
    // frames.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                if let Err(error) = socket.send(&frame).await {
                    tracing::debug!(nic = link.name, %error, "LLDP send failed");
                }
            }
            received = socket.recv() => match received {
                Ok(bytes) => {
                    // A packet socket also receives the frames sent on the same interface.
                    if let Ok(neighbour) = Frame::decode(&bytes)
                        && neighbour.source != link.mac.0
                    {
                        let mut heard = heard.lock();
                        note(heard.entry(link.name.clone()).or_default(), neighbour);
                        news.notify_one();
                    }
                }
                Err(error) => {
                    tracing::debug!(nic = link.name, %error, "LLDP receive failed");
                    // An interface that went down fails at once each time; the tick keeps this
                    // loop from spinning.
                    tick.tick().await;
                }
            }
        }
    }
}

/// Adds a neighbour, replacing the earlier frame of the same port. A time to live of 0 removes it.
fn note(list: &mut Vec<Frame>, neighbour: Frame) {
    list.retain(|n| (&n.chassis_id, &n.port_id) != (&neighbour.chassis_id, &neighbour.port_id));
    if neighbour.ttl_s > 0 && list.len() < NEIGHBOURS_MAX {
        list.push(neighbour);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_replaced_bounded_and_leave() {
        let frame = |port: usize, ttl_s| Frame {
            chassis_id: "leaf1".into(),
            port_id: format!("swp{port}"),
            ttl_s,
            ..Frame::default()
        };
        let mut list = Vec::new();
        for port in [1, 1, 2] {
            note(&mut list, frame(port, 20));
        }
        assert_eq!(list.len(), 2);
        note(&mut list, frame(1, 0));
        assert_eq!(list, [frame(2, 20)]);
        for port in 0..100 {
            note(&mut list, frame(port, 20));
        }
        assert_eq!(list.len(), NEIGHBOURS_MAX);
    }
}
