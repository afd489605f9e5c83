//! Problems of cables as text.

use crate::catalog::entity::Partition;
use crate::machine::entity::{Machine, Nic};
use crate::machine::read::cables::{ClaimRefused, DisputedClaim, claims, hearings, judge};
use crate::switch::entity::Switch;
use crate::tables::Tables;

/// The claims of a machine that do not stand, at most one per NIC. A NIC with a claim that stands
/// has no dispute.
fn disputes<'a>(tables: &'a Tables, machine: &'a Machine) -> Vec<DisputedClaim<'a>> {
    let of_card = |nic: &'a Nic| {
        let judged = claims(tables, machine, nic).into_iter().map(|claim| {
            let refused = judge(tables, machine, nic.mac, claim).err();
            (claim, refused)
        });
        let judged: Vec<_> = judged.collect();
        if judged.iter().any(|(_, refused)| refused.is_none()) {
            return None;
        }
        let (claim, refused) = judged.into_iter().next()?;
        Some(DisputedClaim {
            mac: nic.mac,
            switch: claim.switch,
            port: claim.port,
            refused: refused?,
        })
    };
    machine.hardware.nics.iter().filter_map(of_card).collect()
}

/// Disagreements between the machine and switches, one line each with both reports. A port at which
/// the switch hears nobody is no disagreement yet.
pub(crate) fn disputed(tables: &Tables, machine: &Machine) -> Vec<String> {
    let claimed = disputes(tables, machine).into_iter();
    let claimed = claimed.filter(|dispute| dispute.refused != ClaimRefused::Unheard);
    claimed.map(|dispute| dispute.to_string()).collect()
}

/// Ports at which switches hear a NIC that the machine claims to be elsewhere, one line each.
pub(crate) fn echoes(tables: &Tables, machine: &Machine) -> Vec<String> {
    let mut lines = Vec::new();
    for nic in &machine.hardware.nics {
        let claims = claims(tables, machine, nic);
        let Some(first) = claims.first() else {
            continue;
        };
        let hearings = hearings(tables, machine, nic.mac).into_iter();
        let others = hearings.filter(|heard| {
            let mut claims = claims.iter();
            let at = (&heard.switch.id, heard.port);
            claims.all(|claim| (&claim.switch.id, claim.port) != at)
        });
        lines.extend(others.map(|heard| {
            format!(
                "{} says that it hears {} at {}, the machine says that it is at {} {}",
                heard.switch.id, nic.mac, heard.port, first.switch.id, first.port
            )
        }));
    }
    lines
}

/// The cables that a machine lacks, as text; `None` means that it has all.
pub(crate) fn missing(tables: &Tables, machine: &Machine) -> Option<String> {
    let is_wired = |nic: &&Nic| {
        let mut links = machine.links.iter();
        !claims(tables, machine, nic).is_empty() || links.any(|link| link.mac == nic.mac)
    };
    let partition = machine.partition.as_ref();
    let partition = partition.and_then(|id| tables.get::<Partition>(id))?;
    let wanted = partition.uplinks();
    // Without a wanted number only NICs that hear a switch, or are heard, count: an unused NIC
    // would be missed for ever.
    let expected = wanted.unwrap_or_else(|| machine.hardware.nics.iter().filter(is_wired).count());
    // A port that only the switch reports never enters a tenant's segment, so that no tenant is
    // helped by it.
    let links = machine.links.iter().filter(|link| !link.unclaimed);
    let count = links.count();
    if count >= expected {
        return None;
    }
    let stories = disputes(tables, machine).into_iter();
    let mut stories: Vec<_> = stories.map(|dispute| dispute.to_string()).collect();
    let unclaimed = machine.links.iter().filter(|link| link.unclaimed);
    stories.extend(unclaimed.map(|link| {
        format!(
            "{} hears {} at {}, where the machine heard nobody",
            link.switch, link.mac, link.port
        )
    }));
    let stories = match stories.is_empty() {
        true => String::new(),
        false => format!(": {}", stories.join("; ")),
    };
    Some(format!(
        "{count} of its {expected} cables are confirmed{stories}"
    ))
}

/// `true` if its partition has a switch. Without one no port has to be moved.
pub(crate) fn is_managed(tables: &Tables, machine: &Machine) -> bool {
    let mut switches = tables.all::<Switch>();
    switches.any(|switch| machine.partition.as_ref() == Some(&switch.partition))
}

/// The reason why the ports of a machine cannot be moved; `None` means that they can.
pub(crate) fn trouble(tables: &Tables, machine: &Machine) -> Option<String> {
    if !is_managed(tables, machine) {
        return None;
    }
    let disputed = disputed(tables, machine);
    if !disputed.is_empty() {
        return Some(format!("its cables are disputed: {}", disputed.join("; ")));
    }
    let unknown = || "its cables are not known: it hears no registered switch by LLDP".into();
    missing(tables, machine).or_else(|| machine.links.is_empty().then(unknown))
}
