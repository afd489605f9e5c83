//! Sessions that are away and networks whose routes are refused, whatever control desires.

use std::collections::BTreeMap;
#[cfg(test)]
use std::time::Duration;

use agents_nos::model::{PortName, RouteMap, RouteMatch, RouteRule};
use agents_nos::{SwitchModel, Vni};

use crate::routing::names;
use crate::suspension::{Suspended, Suspension};

/// The parts of ports that are suspended, with the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspensions(BTreeMap<Suspended, Suspension>);

impl FromIterator<(Suspended, Suspension)> for Suspensions {
    fn from_iter<T: IntoIterator<Item = (Suspended, Suspension)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Suspensions {
    /// Takes sessions and routes out of a desired state. Returns the reasons.
    pub(crate) fn apply(&self, wanted: &mut SwitchModel) -> Vec<String> {
        let away = self.0.iter().filter_map(|(of, suspension)| {
            let port = PortName::new(&of.port).ok()?;
            let is_there = match of.vni {
                None => {
                    let bgp = wanted.bgp.as_mut()?;
                    let in_vrfs = bgp.vrfs.values_mut();
                    let all = in_vrfs.chain(std::iter::once(&mut bgp.underlay));
                    all.filter_map(|of| of.remove(&port)).count() > 0
                }
                Some(vni) => refuse(wanted, &port, vni),
            };
            is_there.then(|| suspension.reason(of))
        });
        away.collect()
    }

    /// Time that a part is suspended. `None` if it is not.
    #[cfg(test)]
    pub(crate) fn wait_of(&self, port: &str, vni: Option<Vni>) -> Option<Duration> {
        let port = port.to_owned();
        self.0.get(&Suspended { port, vni }).map(|of| of.wait)
    }
}

/// Turns the rules that permit a VNI's routes into ones that deny them. `false` if there are none.
fn refuse(wanted: &mut SwitchModel, port: &PortName, vni: Vni) -> bool {
    let maps = &mut wanted.policies.route_maps;
    let map = names(port.as_ref()).ok();
    let Some(map) = map.and_then(|(import, _)| maps.get_mut(&import)) else {
        return false;
    };
    let of_vni = RouteMatch::EvpnOnly(vni);
    let is_permitted = |rule: &RouteRule| rule.permits && rule.matches.contains(&of_vni);
    if !map.rules().values().any(is_permitted) {
        return false;
    }
    let rules = map.rules().iter().map(|(number, rule)| {
        let mut rule = rule.clone();
        if is_permitted(&rule) {
            rule.permits = false;
            rule.is_last_resort = false;
        }
        (*number, rule)
    });
    // The map has a rule, so that it stays one.
    if let Ok(refusing) = RouteMap::numbered(rules.collect::<Vec<_>>()) {
        *map = refusing;
    }
    true
}
