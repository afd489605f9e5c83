//! Queries about certificates and identities.

use std::collections::BTreeMap;

use proto_types::Timestamp;

use crate::identity::entity::{Certificate, Identity};
use crate::tables::Tables;

/// `true` if the cluster issued the certificate, and it is neither expired nor revoked.
pub fn is_certificate_good(tables: &Tables, serial: &str, now: Timestamp) -> bool {
    tables
        .get::<Certificate>(&serial.to_owned())
        .is_some_and(|certificate| certificate.revoked_at.is_none() && now < certificate.not_after)
}

/// The partitions whose BMCs an agent of the mesh reads, each with the time at which the first of its
/// agents joined. An agent whose identity was revoked reads none. Agents of the published stack have no
/// identity, so that nobody knows which partitions have one.
pub(crate) fn bmc_agents(tables: &Tables) -> BTreeMap<&str, Timestamp> {
    let mut found = BTreeMap::new();
    let identities = tables.all::<Identity>();
    for identity in identities.filter(|identity| identity.revoked_at.is_none()) {
        let Some(partition) = partition_of_bmc_agent(&identity.id) else {
            continue;
        };
        let since = found.entry(partition).or_insert(identity.joined_at);
        *since = identity.joined_at.min(*since);
    }
    found
}

/// The partition in the SPIFFE id of an agent of BMCs. `None` means that it is of something else.
fn partition_of_bmc_agent(identity: &str) -> Option<&str> {
    let path = identity.strip_prefix("spiffe://")?.split_once('/')?.1;
    let (partition, agent) = path.strip_prefix("partition/")?.split_once('/')?;
    agent.starts_with("bmc/").then_some(partition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_bmcs_are_known_by_their_names() {
        for (id, expected) in [
            ("spiffe://test/partition/lab/bmc/bmc-1", Some("lab")),
            ("spiffe://test/partition/lab/core/bmc", None),
            ("spiffe://test/partition/bmc/pixie/bmc", None),
            ("spiffe://test/machine/bmc/bmc", None),
            ("spiffe://bmc/partition", None),
            ("lab/bmc/bmc-1", None),
        ] {
            assert_eq!(partition_of_bmc_agent(id), expected, "{id}");
        }
    }
}
