//! Private ports: one isolation group of the ASIC, and the kernel's flag.
//!
//! `CONFIG_DB` has no table for isolation groups. orchagent takes them from `APPL_DB`, where SONiC's
//! own mclagsyncd writes them the way of a `ProducerStateTable`; so does this back-end. A port in the
//! group, that has no bridge port yet, joins it in the moment that it gets one, before it is in a
//! VLAN.
//!
//! Frames that the ASIC gives to the processor (DHCP, for a relay) are forwarded by the kernel's
//! bridge, which knows nothing of that group: there each private port has the flag `isolated`.

use std::collections::BTreeSet;
use std::path::Path;

use super::rows::Row;
use super::snapshot::Snapshot;

/// The row of the group in `APPL_DB`.
pub(super) const GROUP: &str = "ISOLATION_GROUP_TABLE:metalmesh";

impl Snapshot {
    /// The ports that orchagent was told to isolate from each other.
    pub(super) fn grouped(&self) -> BTreeSet<&str> {
        let list = |field| {
            let names = self.applied(GROUP, field).unwrap_or_default();
            let names = names.split(',').filter(|name| !name.is_empty());
            names.collect::<BTreeSet<&str>>()
        };
        let members = list("MEMBERS");
        let bound = list("PORTS");
        bound.intersection(&members).copied().collect()
    }
}

/// The fields of the group with these ports.
pub(super) fn group(ports: &BTreeSet<&str>) -> Row {
    let ports: Vec<&str> = ports.iter().copied().collect();
    let ports = ports.join(",");
    let fields = [
        ("DESCRIPTION", "machines without a tenant"),
        ("TYPE", "bridge-port"),
        ("PORTS", ports.as_str()),
        ("MEMBERS", ports.as_str()),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The commands of a transaction, which is in `CONFIG_DB` before and after, that give the group to
/// orchagent.
pub(super) fn commands(group: &Row) -> Vec<Vec<&str>> {
    let mut fields = vec!["HSET", "_ISOLATION_GROUP_TABLE:metalmesh"];
    let pairs = group.iter();
    fields.extend(pairs.flat_map(|(name, value)| [name.as_str(), value.as_str()]));
    vec![
        vec!["SELECT", "0"],
        vec!["SADD", "ISOLATION_GROUP_TABLE_KEY_SET", "metalmesh"],
        fields,
        vec!["PUBLISH", "ISOLATION_GROUP_TABLE_CHANNEL@0", "G"],
        vec!["SELECT", "4"],
    ]
}

/// `true` if the kernel's bridge isolates a port. `kernel` is where it describes its interfaces.
pub(super) fn is_flagged(kernel: &Path, port: &str) -> bool {
    let flag = std::fs::read_to_string(kernel.join(port).join("brport/isolated"));
    flag.is_ok_and(|flag| flag.trim() == "1")
}

/// Sets or removes the kernel's flag of a port in its bridge.
pub(super) fn flag(kernel: &Path, port: &str, on: bool) -> std::io::Result<()> {
    let value = if on { "1" } else { "0" };
    std::fs::write(kernel.join(port).join("brport/isolated"), value)
}
