//! What clients may see.
//!
//! The state counts its changes, and every answer names the count: so the order in which things
//! happened is known, and a history is linearizable exactly when no answer is older than one that
//! came before its call, and each says what the state was at its count.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Applied, Put};

/// What all clients have asked and been told.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// Values that somebody asked to write.
    issued: BTreeSet<u64>,
    /// Values whose write was refused for good.
    refused: BTreeSet<u64>,
    /// Acknowledged writes by revision.
    acknowledged: BTreeMap<u64, Put>,
    /// The newest revision that anybody was told.
    newest: u64,
    pub(crate) reads: u64,
}

/// What was true when a call began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(u64);

impl Oracle {
    pub(crate) fn begin(&self) -> Began {
        Began(self.newest)
    }

    pub(crate) fn issue(&mut self, put: &Put) {
        self.issued.insert(put.value);
    }

    /// The store said that nothing was done.
    pub(crate) fn refuse(&mut self, put: &Put) {
        self.refused.insert(put.value);
    }

    pub(crate) fn writes(&self) -> usize {
        self.acknowledged.len()
    }

    pub(crate) fn acknowledge(
        &mut self,
        began: Began,
        put: &Put,
        revision: u64,
        applied: &Applied,
    ) -> Result<(), String> {
        if revision <= began.0 {
            return Err(format!(
                "write {} was given revision {revision}, but {} was seen before it was asked for",
                put.value, began.0
            ));
        }
        match applied.at(revision) {
            Some(found) if (found.key, found.value) == (put.key, put.value) => {}
            found => {
                return Err(format!(
                    "write {} was given revision {revision}, which is {found:?}",
                    put.value
                ));
            }
        }
        self.acknowledged.insert(revision, *put);
        self.newest = self.newest.max(revision);
        Ok(())
    }

    pub(crate) fn read(
        &mut self,
        began: Began,
        key: u8,
        (revision, value): (u64, Option<u64>),
        applied: &Applied,
    ) -> Result<(), String> {
        self.reads += 1;
        if revision < began.0 {
            return Err(format!(
                "a read of key {key} went back in time: it saw revision {revision}, but {} was \
                 acknowledged or read before it began",
                began.0
            ));
        }
        let expected = applied.value_at(revision, key);
        if value != expected {
            return Err(format!(
                "a read of key {key} at revision {revision} saw {value:?} instead of {expected:?}"
            ));
        }
        self.newest = self.newest.max(revision);
        Ok(())
    }

    /// At the end, when all nodes agree on a state of `revision`.
    pub(crate) fn check_end(&self, revision: u64, applied: &Applied) -> Result<(), String> {
        if let Some((lost, put)) = self.acknowledged.range(revision + 1..).next() {
            return Err(format!(
                "write {} was acknowledged as revision {lost}, but the cluster ended at {revision}",
                put.value
            ));
        }
        let mut seen = BTreeMap::new();
        for (at, put) in applied.commands().filter(|(at, _)| *at <= revision) {
            if !self.issued.contains(&put.value) {
                return Err(format!("value {} was never written", put.value));
            }
            if self.refused.contains(&put.value) {
                return Err(format!(
                    "write {} was refused, and took effect as revision {at}",
                    put.value
                ));
            }
            if let Some(first) = seen.insert(put.value, at) {
                return Err(format!(
                    "write {} took effect twice, as revisions {first} and {at}",
                    put.value
                ));
            }
        }
        for (at, put) in &self.acknowledged {
            if seen.get(&put.value) != Some(at) {
                return Err(format!("acknowledged write {} is lost", put.value));
            }
        }
        Ok(())
    }
}
