use std::net::IpAddr;

use crate::intent::Intent;
use crate::place::PortPlace;
use crate::state::SwitchState;
use crate::vni::Vni;

/// One change of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Makes the segment, or repairs its broken parts.
    EnsureSegment { vni: Vni, mtu: u32 },
    /// Removes an empty segment.
    RemoveSegment { vni: Vni },
    /// Floods and forwards to one more tunnel end.
    AddRemote { vni: Vni, remote: IpAddr },
    /// Stops sending to a tunnel end.
    RemoveRemote { vni: Vni, remote: IpAddr },
    /// Takes the port out of its current place.
    Isolate { port: String },
    /// Puts an isolated or differently placed port into a segment.
    Move { port: String, vni: Vni },
    /// Brings the port up or down.
    SetAdmin { port: String, up: bool },
}

/// The changes from the observed to the intended state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Changes in the order to apply them. Empty if the switch is as intended.
    pub deltas: Vec<Delta>,
    /// Parts of the intent that this switch cannot fulfil, with the reason.
    pub problems: Vec<String>,
}

/// Plans the changes from `observed` to `intent`.
///
/// The order keeps tenants apart at every step: ports go down and leave first, tunnel ends that
/// must receive nothing more are cut, then segments and tunnel ends are made, ports are moved, and
/// only then brought up. Segments that are empty by then are removed.
#[must_use]
pub fn plan(observed: &SwitchState, intent: &Intent) -> Plan {
    let mut problems = Vec::new();
    let wanted = wanted_places(observed, intent, &mut problems);
    let mut deltas = Vec::new();
    leave(observed, &wanted, &mut deltas);
    cut_remotes(observed, intent, &mut deltas);
    ensure_segments(observed, intent, &mut deltas);
    enter(observed, &wanted, &mut deltas);
    for vni in observed
        .segments
        .keys()
        .filter(|v| !intent.segments.contains_key(v))
    {
        deltas.push(Delta::RemoveSegment { vni: *vni });
    }
    Plan { deltas, problems }
}

/// The intended state of one port.
struct Wanted<'a> {
    port: &'a str,
    segment: Option<Vni>,
    admin_up: bool,
}

/// The intended state of each port of the switch. A port that the intent does not name, or whose
/// segment it does not describe, is isolated.
fn wanted_places<'a>(
    observed: &'a SwitchState,
    intent: &Intent,
    problems: &mut Vec<String>,
) -> Vec<Wanted<'a>> {
    for name in intent
        .ports
        .keys()
        .filter(|n| !observed.ports.contains_key(*n))
    {
        problems.push(format!("no port {name} on this switch"));
    }
    observed
        .ports
        .iter()
        .map(|(port, seen)| {
            let Some(asked) = intent.ports.get(port) else {
                return Wanted {
                    port,
                    segment: None,
                    admin_up: seen.admin_up,
                };
            };
            let known = asked.segment.filter(|v| intent.segments.contains_key(v));
            if let (Some(vni), None) = (asked.segment, known) {
                problems.push(format!(
                    "port {port} is for segment {vni}, which is unknown"
                ));
            }
            Wanted {
                port,
                segment: known,
                admin_up: asked.admin_up,
            }
        })
        .collect()
}

fn place_of(observed: &SwitchState, port: &str) -> Option<PortPlace> {
    observed.ports.get(port).map(|p| p.place.clone())
}

fn is_up(observed: &SwitchState, port: &str) -> bool {
    observed.ports.get(port).is_some_and(|p| p.admin_up)
}

/// Ports go down and leave their old places. All of them before any enters: an exchange of two
/// tenants' ports would otherwise have both in one segment for a moment.
fn leave(observed: &SwitchState, wanted: &[Wanted<'_>], deltas: &mut Vec<Delta>) {
    for want in wanted {
        if !want.admin_up && is_up(observed, want.port) {
            deltas.push(Delta::SetAdmin {
                port: want.port.to_owned(),
                up: false,
            });
        }
    }
    for want in wanted {
        let stays = match place_of(observed, want.port) {
            Some(PortPlace::Isolated) | None => true,
            Some(PortPlace::Segment(vni)) => want.segment == Some(vni),
            Some(PortPlace::Foreign(_)) => false,
        };
        if !stays {
            deltas.push(Delta::Isolate {
                port: want.port.to_owned(),
            });
        }
    }
}

fn cut_remotes(observed: &SwitchState, intent: &Intent, deltas: &mut Vec<Delta>) {
    for (vni, seen) in &observed.segments {
        let Some(asked) = intent.segments.get(vni) else {
            continue;
        };
        for remote in seen.remotes.difference(&asked.remotes) {
            deltas.push(Delta::RemoveRemote {
                vni: *vni,
                remote: *remote,
            });
        }
    }
}

fn ensure_segments(observed: &SwitchState, intent: &Intent, deltas: &mut Vec<Delta>) {
    for (vni, asked) in &intent.segments {
        let seen = observed.segments.get(vni);
        let intact = seen.is_some_and(|s| s.intact && s.mtu == asked.mtu);
        if !intact {
            deltas.push(Delta::EnsureSegment {
                vni: *vni,
                mtu: asked.mtu,
            });
        }
        for remote in &asked.remotes {
            // A repair may make a new tunnel device without remotes, so all of them are added
            // again.
            if !(intact && seen.is_some_and(|s| s.remotes.contains(remote))) {
                deltas.push(Delta::AddRemote {
                    vni: *vni,
                    remote: *remote,
                });
            }
        }
    }
}

/// Ports enter their segments, and come up after all of them have.
fn enter(observed: &SwitchState, wanted: &[Wanted<'_>], deltas: &mut Vec<Delta>) {
    for want in wanted {
        let Some(vni) = want.segment else { continue };
        if place_of(observed, want.port) != Some(PortPlace::Segment(vni)) {
            deltas.push(Delta::Move {
                port: want.port.to_owned(),
                vni,
            });
        }
    }
    for want in wanted {
        if want.admin_up && !is_up(observed, want.port) {
            deltas.push(Delta::SetAdmin {
                port: want.port.to_owned(),
                up: true,
            });
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
