//! In-memory state for published agents: the last order of each switch, and a slot for each open
//! stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use control_gate::refusal::refused;
use control_state::ErrorCode;
use proto_types::SwitchId;
use tonic::Status;

use crate::bmc_streams::BmcStreams;
use crate::switch_order::SwitchOrder;

/// Streams of agents at the same time on one node.
const STREAMS_MAX: usize = 16_384;
/// Streams for one machine or partition at the same time: the old one of an agent that came back
/// may not have ended yet.
const STREAMS_OF_ONE_MAX: usize = 8;
/// Most switches whose last order is remembered.
const TOLD_MAX: usize = 10_000;

/// The open streams of published agents, and what their switches were told.
#[derive(Debug, Default)]
pub(crate) struct PublishedStreams {
    told: Mutex<BTreeMap<SwitchId, SwitchOrder>>,
    streams: Arc<Mutex<Streams>>,
    /// Streams on which orders for BMCs are taken.
    pub(crate) bmc_streams: BmcStreams,
}

#[derive(Debug, Default)]
struct Streams {
    all: usize,
    of_one: BTreeMap<String, usize>,
}

/// A slot for a stream, released on drop.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    streams: Arc<Mutex<Streams>>,
    of: String,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.all -= 1;
        if let Some(own) = streams.of_one.get_mut(&self.of) {
            *own -= 1;
            if *own == 0 {
                streams.of_one.remove(&self.of);
            }
        }
    }
}

impl PublishedStreams {
    /// A place for a stream of a machine or partition.
    ///
    /// # Errors
    /// `resource_exhausted` when there are too many.
    pub(crate) fn place(&self, of: &str) -> Result<StreamSlot, Status> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let own = streams.of_one.get(of).copied().unwrap_or_default();
        let limit = if own >= STREAMS_OF_ONE_MAX {
            Some((format!("for \"{of}\""), STREAMS_OF_ONE_MAX))
        } else if streams.all >= STREAMS_MAX {
            Some(("on this node".to_owned(), STREAMS_MAX))
        } else {
            None
        };
        if let Some((whose, limit)) = limit {
            let message = format!("{limit} streams {whose} are open, which is the limit");
            return Err(refused(ErrorCode::TooMany, message));
        }
        streams.all += 1;
        streams.of_one.insert(of.to_owned(), own + 1);
        Ok(StreamSlot {
            streams: Arc::clone(&self.streams),
            of: of.to_owned(),
        })
    }

    /// Remembers the order of a switch. An unchanged order keeps its generation.
    pub(crate) fn tell(&self, id: &SwitchId, told: SwitchOrder) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |old: &SwitchOrder| old.term == told.term && old.ports == told.ports;
        if all.get(id).is_some_and(is_known) {
            return;
        }
        if all.len() >= TOLD_MAX && !all.contains_key(id) {
            all.pop_first();
        }
        all.insert(id.clone(), told);
    }

    /// The order that this node last sent to a switch.
    pub(crate) fn told(&self, id: &SwitchId) -> Option<SwitchOrder> {
        let all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use proto_types::Vni;

    use super::*;

    #[test]
    fn streams_are_bounded_and_given_back() {
        let published = PublishedStreams::default();
        let mut places: Vec<_> = (0..STREAMS_OF_ONE_MAX)
            .map(|_| published.place("m1").unwrap())
            .collect();
        let refused = published.place("m1").unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        published.place("m2").unwrap();
        places.pop();
        places.push(published.place("m1").unwrap());
        places.clear();
        assert_eq!(published.streams.lock().unwrap().all, 0);
        assert!(published.streams.lock().unwrap().of_one.is_empty());
    }

    #[test]
    fn a_switch_that_is_told_the_same_again_keeps_the_generation() {
        let published = PublishedStreams::default();
        let id: SwitchId = "leaf1".parse().unwrap();
        let told = |generation, up| SwitchOrder {
            term: 1,
            generation,
            ports: [("swp1".to_owned(), (Vni::NONE, up))].into(),
        };
        published.tell(&id, told(1, true));
        published.tell(&id, told(2, true));
        assert_eq!(published.told(&id).unwrap().generation, 1);
        published.tell(&id, told(3, false));
        assert_eq!(published.told(&id).unwrap().generation, 3);
    }
}
