//! Sessions that are away, whatever control desires.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use agents_nos::SwitchModel;
use agents_nos::model::PortName;

/// The sessions that are away, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspensions(BTreeMap<String, Suspension>);

/// The reason why a session is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// EVPN routes that it announced.
    pub(crate) received: u64,
    /// EVPN routes that it may announce.
    pub(crate) limit: u64,
    /// Time that it is away.
    pub(crate) wait: Duration,
}

impl fmt::Display for Suspension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            received,
            limit,
            wait,
        } = self;
        write!(
            f,
            "{received} EVPN routes, and may announce {limit}: its session is away for {wait:?}"
        )
    }
}

impl FromIterator<(String, Suspension)> for Suspensions {
    fn from_iter<T: IntoIterator<Item = (String, Suspension)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Suspensions {
    /// Takes the sessions out of a desired state. Returns the reasons.
    pub(crate) fn apply(&self, wanted: &mut SwitchModel) -> Vec<String> {
        let Some(bgp) = &mut wanted.bgp else {
            return Vec::new();
        };
        let away = self.0.iter().filter_map(|(port, reason)| {
            bgp.underlay.remove(&PortName::new(port).ok()?)?;
            Some(format!("the firewall on port {port} announced {reason}"))
        });
        away.collect()
    }

    /// Time that the session on a port is away. `None` if it is not.
    #[cfg(test)]
    pub(crate) fn wait_of(&self, port: &str) -> Option<Duration> {
        self.0.get(port).map(|of| of.wait)
    }
}
