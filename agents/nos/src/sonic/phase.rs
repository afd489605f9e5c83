//! Writes that go together, and what shows that SONiC has followed.

use std::collections::BTreeSet;
use std::fmt;

use super::rows::{Change, Row};

/// Changes that are written at once, and the signs of their effect. The next phase waits for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) changes: Vec<Change>,
    pub(super) until: Vec<Sign>,
    /// The kernel's flag of a port, set after the changes are seen.
    pub(super) flag: Option<PortFlag>,
}

/// The kernel's flag that isolates a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortFlag {
    pub(super) port: String,
    pub(super) is_on: bool,
}

/// A sign that SONiC has done something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// `APPL_DB` has a row with these fields. An empty value may be missing.
    Applied(String, Row),
    /// `APPL_DB` has no such row.
    NotApplied(String),
    /// `STATE_DB` has such a row.
    Made(String),
    /// `STATE_DB` has no such row.
    NotMade(String),
    /// The ASIC has a port in a bridge (`true` first) or routes it (`true` second).
    Port(String, bool, bool),
    /// The ASIC isolates a port, or does not.
    Isolated(String, bool),
}

impl Phase {
    /// Adds a row to make or change.
    pub(super) fn set(mut self, key: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        self.changes.push(Change::set(key.into(), fields));
        self
    }

    /// Adds a row to remove.
    pub(super) fn remove(mut self, key: impl Into<String>) -> Self {
        self.changes.push(Change::Remove(key.into()));
        self
    }

    /// Adds a row of `APPL_DB` to wait for.
    pub(super) fn applied(mut self, key: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter();
        let row = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.until.push(Sign::Applied(key.into(), row.collect()));
        self
    }

    /// Adds the isolation group with these ports, and waits until orchagent has it.
    pub(super) fn isolate(mut self, ports: &BTreeSet<&str>) -> Self {
        let group = super::isolation::group(ports);
        self.changes.push(Change::Isolate(group.clone()));
        self.until(Sign::Applied(super::isolation::GROUP.to_owned(), group))
    }

    /// Adds the kernel's flag of a port.
    pub(super) fn flagged(mut self, port: &str, is_on: bool) -> Self {
        let port = port.to_owned();
        self.flag = Some(PortFlag { port, is_on });
        self
    }

    /// Adds another sign to wait for.
    pub(super) fn until(mut self, sign: Sign) -> Self {
        self.until.push(sign);
        self
    }

    /// The keys of rows that the phase makes or changes.
    pub(super) fn made(&self) -> BTreeSet<&String> {
        let made = self.changes.iter().filter_map(|change| match change {
            Change::Set(key, _) => Some(key),
            Change::Remove(_) | Change::Isolate(_) => None,
        });
        made.collect()
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(key, _) => write!(f, "{key}"),
            Self::NotApplied(key) | Self::NotMade(key) => write!(f, "the end of {key}"),
            Self::Made(key) => f.write_str(key),
            Self::Port(port, true, _) => write!(f, "{port} in a bridge of the ASIC"),
            Self::Port(port, _, true) => write!(f, "{port} routed by the ASIC"),
            Self::Port(port, ..) => write!(f, "{port} in nobody's place in the ASIC"),
            Self::Isolated(port, true) => write!(f, "{port} in an isolation group of the ASIC"),
            Self::Isolated(port, false) => write!(f, "{port} in no isolation group of the ASIC"),
        }
    }
}
