//! The configuration of a running FRR: ours, and the rest.

use std::collections::BTreeSet;

use super::model::{FrrConfig, PrefixEntry, PrefixListKey};
use super::numbers::PrefixNumbers;

/// A running configuration, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Everything that is ours.
    pub config: FrrConfig,
    /// Lines that are not ours, or that this model cannot say. They are never changed.
    pub foreign: BTreeSet<ForeignLine>,
    /// FRR's numbers of the prefix lists' entries.
    pub(super) numbers: PrefixNumbers,
}

/// A line of a running configuration that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignLine {
    /// Lines that the line is inside of, outermost first.
    pub context: Vec<String>,
    /// The line, without indentation.
    pub line: String,
}

impl From<FrrConfig> for Observed {
    /// The state of an FRR that has just loaded the rendered configuration.
    fn from(config: FrrConfig) -> Self {
        let mut made = Self::default();
        for entry in &config.prefixes {
            let free = made.numbers.free(entry);
            made.note_entry(entry.clone(), free);
        }
        for key in &config.closed {
            made.note_closed(key.clone());
        }
        made.config = config;
        made
    }
}

impl Observed {
    /// State of a switch whose daemons were asked one by one: VRFs, the router id and
    /// the pace of zebra as zebra knows them, everything else as bgpd does. A list that only zebra has filters nothing.
    #[must_use]
    pub fn of_daemons(zebra: Self, mut bgpd: Self) -> Self {
        bgpd.config.router_id = zebra.config.router_id;
        bgpd.config.has_zebra_settings = zebra.config.has_zebra_settings;
        bgpd.config.vrfs = zebra.config.vrfs;
        bgpd.foreign.extend(zebra.foreign);
        bgpd
    }

    /// Records an entry of ours.
    pub(super) fn note_entry(&mut self, entry: PrefixEntry, sequence: u32) {
        self.numbers.note(&entry, sequence);
        self.config.prefixes.insert(entry);
    }

    /// Records the last entry of a list of ours.
    pub(super) fn note_closed(&mut self, key: PrefixListKey) {
        self.numbers.take(key.clone(), PrefixListKey::LAST);
        self.config.closed.insert(key);
    }
}
