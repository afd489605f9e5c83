use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use proto_wire_lldp::{Frame, Mac};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Neighbours kept per port; further ones are ignored. More than one is normal only behind an
/// unmanaged switch.
pub const NEIGHBOURS_MAX: usize = 8;

/// Changes of a port's neighbours at once: a machine that boots has some.
const CHANGES: u32 = 8;
/// Time after which one more change is possible. Each change is a report of all ports, which control
/// writes to its log: without a limit one machine could write as much as a whole leaf.
const CHANGE_EVERY: Duration = Duration::from_secs(30);

/// LLDP neighbours by port. Cheap to clone (`Arc`).
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    table: Arc<Mutex<BTreeMap<String, Port>>>,
    changed: Arc<Notify>,
}

#[derive(Clone, Debug, Default)]
struct Port {
    entries: Vec<Entry>,
    /// Time from which on [`CHANGES`] are possible again. `None` without a change so far.
    full_at: Option<Instant>,
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
        let Some(port) = table.get_mut(port) else {
            return Vec::new();
        };
        port.entries.retain(|e| e.until > now);
        port.entries.iter().map(|e| e.frame.clone()).collect()
    }

    /// Returns after a neighbour came or changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Stores a neighbour's frame. Returns `true` if the neighbour is new or has changed.
    ///
    /// A change above the limit of the port is not stored: the neighbour stays as it was, and a later
    /// frame of it counts.
    pub fn heard(&self, port: &str, frame: Frame, now: Instant) -> bool {
        let news = {
            let mut table = self.lock();
            let port = table.entry(port.to_owned()).or_default();
            port.hear(frame, now)
        };
        if news {
            self.changed.notify_one();
        }
        news
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Port>> {
        self.table.lock()
    }
}

impl Port {
    fn hear(&mut self, frame: Frame, now: Instant) -> bool {
        let until = now + Duration::from_secs(frame.ttl_s.into());
        self.entries.retain(|e| e.until > now);
        let full = self.entries.len() >= NEIGHBOURS_MAX;
        let known = self
            .entries
            .iter()
            .position(|known| speaker(&known.frame) == speaker(&frame));
        let entry = known.and_then(|at| self.entries.get_mut(at));
        match entry {
            Some(entry) if entry.frame == frame => {
                entry.until = until;
                return false;
            }
            None if frame.ttl_s == 0 || full => return false,
            _ => {}
        }
        if !self.may_change(now) {
            // It is there still, whatever it says.
            if let Some(entry) = known.and_then(|at| self.entries.get_mut(at)) {
                entry.until = entry.until.max(until);
            }
            return false;
        }
        let entry = Entry { frame, until };
        match known.and_then(|at| self.entries.get_mut(at)) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        true
    }

    /// Takes one of the changes that are possible now.
    fn may_change(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.filter(|at| *at > now).unwrap_or(now);
        let full_at = full_at + CHANGE_EVERY;
        let may = full_at.duration_since(now) <= CHANGE_EVERY * CHANGES;
        if may {
            self.full_at = Some(full_at);
        }
        may
    }
}

/// The key that tells neighbours of one port apart.
fn speaker(frame: &Frame) -> (Mac, &str, &str) {
    (frame.source, &frame.chassis_id, &frame.port_id)
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

    fn named(system_name: &str) -> Frame {
        Frame {
            system_name: system_name.into(),
            ..machine("m1", 60)
        }
    }

    #[tokio::test]
    async fn neighbours_come_change_and_go() {
        let table = Neighbours::default();
        let now = Instant::now();
        assert!(table.heard("swp1", machine("m1", 60), now));
        assert!(!table.heard("swp1", machine("m1", 60), now), "nothing new");
        let renamed = named("host");
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

    #[tokio::test]
    async fn a_neighbour_that_changes_all_the_time_is_news_now_and_then() {
        let table = Neighbours::default();
        let begin = Instant::now();
        let at = |second| begin + Duration::from_secs(second);
        let mut news = 0;
        for second in 1..=200 {
            let frame = named(&second.to_string());
            news += u64::from(table.heard("swp1", frame, at(second)));
            assert_eq!(table.on("swp1").len(), 1, "it is there");
        }
        assert_eq!(news, u64::from(CHANGES) + 200 / CHANGE_EVERY.as_secs());
        // Another port has changes of its own.
        assert!(table.heard("swp2", named("host"), at(200)));
        // The last word is heard in the end.
        let later = at(200) + CHANGE_EVERY;
        assert!(table.heard("swp1", named("last"), later));
        assert_eq!(table.on("swp1"), vec![named("last")]);
    }
}
