//! The prefixes of all announcers, updated incrementally: machines of a project share them, so that
//! a new address is looked at once and not once per port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use proto_types::{NetworkId, SwitchId};

use crate::desired::announcer::Announcer;
use crate::network::entity::Ip;
use crate::tables::Tables;

/// The prefixes of all announcers that a port of a switch has.
///
/// Invariant: an announcer is here exactly as long as a switch uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filters {
    by_announcer: BTreeMap<Arc<Announcer>, SharedFilter>,
}

/// The prefixes of an announcer, and the switches that have it at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SharedFilter {
    prefixes: Arc<BTreeSet<IpNet>>,
    users: BTreeSet<SwitchId>,
}

impl Filters {
    /// The prefixes of an announcer. `None` means that no switch uses it.
    pub(super) fn prefixes(&self, announcer: &Announcer) -> Option<Arc<BTreeSet<IpNet>>> {
        let shared = self.by_announcer.get(announcer)?;
        Some(Arc::clone(&shared.prefixes))
    }

    /// Notes that a switch uses an announcer.
    pub(super) fn enter(&mut self, tables: &Tables, announcer: &Arc<Announcer>, id: &SwitchId) {
        let new = || SharedFilter {
            prefixes: read(tables, announcer),
            users: BTreeSet::new(),
        };
        let shared = self.by_announcer.entry(Arc::clone(announcer));
        shared.or_insert_with(new).users.insert(id.clone());
    }

    /// Notes that a switch uses an announcer no more.
    pub(super) fn leave(&mut self, announcer: &Announcer, id: &SwitchId) {
        let Some(shared) = self.by_announcer.get_mut(announcer) else {
            return;
        };
        shared.users.remove(id);
        if shared.users.is_empty() {
            self.by_announcer.remove(announcer);
        }
    }

    /// The announcers whose prefixes an address may change: those of its project, except those
    /// with a prefix around it.
    pub(super) fn of_address(&self, ip: &Ip) -> Vec<Arc<Announcer>> {
        let from = Announcer::first(ip.project);
        let found = self.by_announcer.range(from..);
        let found = found.map(|(announcer, _)| announcer);
        let found = found.take_while(|announcer| announcer.project() == ip.project);
        found
            .filter(|announcer| !announcer.covers(ip.ip))
            .cloned()
            .collect()
    }

    /// The announcers whose prefixes a network may change. Networks change seldom: all are looked
    /// at.
    pub(super) fn of_network(&self, tables: &Tables, network: &NetworkId) -> Vec<Arc<Announcer>> {
        let found = self.by_announcer.keys();
        found
            .filter(|announcer| announcer.depends_on(tables, network))
            .cloned()
            .collect()
    }

    /// Reads the prefixes of an announcer again, and returns its switches if they differ.
    pub(super) fn renew(&mut self, tables: &Tables, announcer: &Announcer) -> BTreeSet<SwitchId> {
        let Some(shared) = self.by_announcer.get_mut(announcer) else {
            return BTreeSet::new();
        };
        let fresh = read(tables, announcer);
        if fresh == shared.prefixes {
            return BTreeSet::new();
        }
        shared.prefixes = fresh;
        shared.users.clone()
    }
}

/// The prefixes of an announcer, as few as possible: more specific ones of a permitted prefix are
/// permitted as well.
pub(super) fn read(tables: &Tables, announcer: &Announcer) -> Arc<BTreeSet<IpNet>> {
    let prefixes: Vec<IpNet> = announcer.prefixes(tables).into_iter().collect();
    Arc::new(IpNet::aggregate(&prefixes).into_iter().collect())
}
