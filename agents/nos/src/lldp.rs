//! LLDP on the ports of a switch: hears the neighbours, and announces switch and port to them.
//!
//! A booting machine must learn its port within seconds. So a port sends at once when it comes up
//! or hears a new neighbour, then every two seconds for a minute, then every thirty seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use proto_wire_lldp::{Frame, Mac, Socket, mac_of};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Neighbours kept per port; further ones are ignored. More than one is normal only behind an
/// unmanaged switch.
pub const NEIGHBOURS_MAX: usize = 8;

/// Interval of frames after a change.
const FAST: Duration = Duration::from_secs(2);
/// Time after a change with the fast interval.
const FAST_FOR: Duration = Duration::from_secs(60);
/// Interval of frames otherwise.
const SLOW: Duration = Duration::from_secs(30);
/// Pause before the socket of a failed interface is opened again.
const REOPEN: Duration = Duration::from_secs(1);
/// Time to live of own frames, seconds: four slow intervals.
const TTL_S: u16 = 120;

/// LLDP neighbours by port. Cheap to clone (`Arc`).
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    table: Arc<Mutex<BTreeMap<String, Vec<Entry>>>>,
    changed: Arc<Notify>,
}

#[derive(Clone, Debug)]
struct Entry {
    frame: Frame,
    until: Instant,
}

impl Neighbours {
    /// The neighbours on a port whose time to live has not ended.
    #[must_use]
    pub fn on(&self, port: &str) -> Vec<Frame> {
        let now = Instant::now();
        let mut table = self.lock();
        let Some(entries) = table.get_mut(port) else {
            return Vec::new();
        };
        entries.retain(|e| e.until > now);
        entries.iter().map(|e| e.frame.clone()).collect()
    }

    /// Returns after a neighbour came or changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Stores a neighbour's frame. Returns `true` if the neighbour is new or has changed.
    pub fn heard(&self, port: &str, frame: Frame, now: Instant) -> bool {
        let until = now + Duration::from_secs(frame.ttl_s.into());
        let mut table = self.lock();
        let entries = table.entry(port.to_owned()).or_default();
        entries.retain(|e| e.until > now);
        let full = entries.len() >= NEIGHBOURS_MAX;
        let known = entries
            .iter_mut()
            .find(|known| speaker(&known.frame) == speaker(&frame));
        let news = match known {
            Some(entry) => {
                let news = entry.frame != frame;
                *entry = Entry { frame, until };
                news
            }
            None if frame.ttl_s == 0 || full => false,
            None => {
                entries.push(Entry { frame, until });
                true
            }
        };
        drop(table);
        if news {
            self.changed.notify_one();
        }
        news
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Entry>>> {
        self.table.lock()
    }
}

/// The key that tells neighbours of one port apart.
fn speaker(frame: &Frame) -> (Mac, &str, &str) {
    (frame.source, &frame.chassis_id, &frame.port_id)
}

/// The content of the switch's frames on one port.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// Chassis id and system name.
    pub switch: String,
    /// System description.
    pub description: String,
    /// Port id: the name of the interface.
    pub port: String,
}

impl Speaker {
    fn frame(&self, source: Mac) -> Frame {
        Frame {
            source,
            chassis_id: self.switch.clone(),
            port_id: self.port.clone(),
            system_name: self.switch.clone(),
            system_description: self.description.clone(),
            ttl_s: TTL_S,
        }
    }
}

/// Sends and listens on one port until `stop`. `came_up` is notified when the port gets its
/// carrier. If the interface disappears, waits until it is back.
pub async fn run(
    speaker: Speaker,
    neighbours: Neighbours,
    came_up: Arc<Notify>,
    stop: CancellationToken,
) {
    loop {
        let result = tokio::select! {
            () = stop.cancelled() => return,
            result = serve(&speaker, &neighbours, &came_up) => result,
        };
        if let Err(error) = result {
            tracing::debug!(port = %speaker.port, error = %error, "LLDP interrupted");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(REOPEN) => {}
            () = came_up.notified() => {}
        }
    }
}

async fn serve(
    speaker: &Speaker,
    neighbours: &Neighbours,
    came_up: &Notify,
) -> std::io::Result<()> {
    let socket = Socket::open(&speaker.port)?;
    let frame = speaker.frame(mac_of(&speaker.port)?).encode();
    let mut fast_until = Instant::now() + FAST_FOR;
    let mut next = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(next) => {
                socket.send(&frame).await?;
                let now = Instant::now();
                next = now + if now < fast_until { FAST } else { SLOW };
            }
            () = came_up.notified() => {
                next = Instant::now();
                fast_until = next + FAST_FOR;
            }
            received = socket.recv() => {
                let now = Instant::now();
                if heard(speaker, neighbours, &received?, now) {
                    next = now;
                    fast_until = now + FAST_FOR;
                }
            }
        }
    }
}

fn heard(speaker: &Speaker, neighbours: &Neighbours, bytes: &[u8], now: Instant) -> bool {
    match Frame::decode(bytes) {
        // A cable between two ports of this switch, or the echo of an own frame, leads to no
        // machine.
        Ok(frame) if frame.chassis_id == speaker.switch => false,
        Ok(frame) => neighbours.heard(&speaker.port, frame, now),
        Err(error) => {
            tracing::debug!(port = %speaker.port, error = %error, "unreadable LLDP frame");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, ttl_s: u16) -> Frame {
        Frame {
            chassis_id: name.into(),
            port_id: "eth0".into(),
            ttl_s,
            ..Frame::default()
        }
    }

    #[tokio::test]
    async fn neighbours_come_change_and_go() {
        let table = Neighbours::default();
        let now = Instant::now();
        assert!(table.heard("swp1", machine("m1", 60), now));
        assert!(!table.heard("swp1", machine("m1", 60), now), "nothing new");
        let renamed = Frame {
            system_name: "host".into(),
            ..machine("m1", 60)
        };
        assert!(table.heard("swp1", renamed.clone(), now));
        assert_eq!(table.on("swp1"), vec![renamed]);
        assert_eq!(table.on("swp2"), vec![]);
        assert!(table.heard("swp1", machine("m1", 0), now), "said good-bye");
        assert_eq!(table.on("swp1"), vec![]);
    }

    #[tokio::test]
    async fn a_port_remembers_a_bounded_number() {
        let table = Neighbours::default();
        for number in 0..100 {
            table.heard("swp1", machine(&format!("m{number}"), 60), Instant::now());
        }
        assert_eq!(table.on("swp1").len(), NEIGHBOURS_MAX);
    }
}
