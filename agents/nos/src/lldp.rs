//! LLDP on the ports of a switch: who hangs there, and telling them where they hang.
//!
//! A machine that boots has to learn its port within seconds, so a port speaks every two seconds
//! for a minute after it came up or heard somebody new, and at once in both cases; then every
//! thirty seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use proto_wire_lldp::{Frame, Mac, Socket, mac_of};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Neighbours that one port remembers; more than one only behind an unmanaged switch.
pub const NEIGHBOURS_MAX: usize = 8;

const FAST: Duration = Duration::from_secs(2);
const FAST_FOR: Duration = Duration::from_secs(60);
const SLOW: Duration = Duration::from_secs(30);
const REOPEN: Duration = Duration::from_secs(1);
/// Validity that we announce: four slow intervals.
const TTL_S: u16 = 120;

/// Who was heard on each port. Cheap to clone.
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
    /// Who is on the port now.
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

    /// Returns after somebody came or changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Remembers what a neighbour said; whether that was news.
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

/// What a switch says on one port.
#[derive(Clone, Debug)]
pub struct Speaker {
    /// Chassis id and system name.
    pub switch: String,
    pub description: String,
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

/// Speaks and listens on one port until told to stop. `came_up` is notified when the port got its
/// carrier. An interface that goes away is waited for.
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
        // A cable between two of our own ports, or the echo of our own frame.
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
