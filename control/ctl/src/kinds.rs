//! The kinds of objects that `metalmesh get` shows: their names and their tables.

use anyhow::{Context as _, Result, bail};
use prost::Message;
use proto_public::admin::v2::TaskInfo;
use proto_public::api::v2::{
    AuditTrace, Component, FilesystemLayout, Image, Ip, Machine, Network, Partition, Project,
    ProjectInvite, Size, SizeImageConstraint, SizeReservation, Switch, Tenant, TenantInvite, Token,
};
use proto_public::metalmesh::admin::v1::{
    FirewallRules, HostPool, JoinTicket, Lease, NodeAllocation, Policy, PoolHost,
    ProjectPolicyLabels, Quota,
};
use proto_public::metalmesh::tenant::v1::Claim;

use crate::output::TableRow;

/// A kind of objects.
#[derive(Debug)]
pub(crate) struct ObjectKind {
    /// The name that the server uses.
    pub(crate) name: &'static str,
    pub(crate) plural: &'static str,
    short: &'static str,
    /// Column titles of its table.
    pub(crate) titles: fn(wide: bool) -> Vec<&'static str>,
    /// Cells of an object, which is given as protobuf bytes.
    pub(crate) cells: fn(bytes: &[u8], wide: bool) -> Result<Vec<String>>,
    /// Full name of its protobuf message.
    #[cfg(test)]
    pub(crate) message: &'static str,
}

macro_rules! kinds {
    ($($name:literal $plural:literal $short:literal $message:ty;)*) => {
        &[$(ObjectKind {
            name: $name,
            plural: $plural,
            short: $short,
            titles: <$message as TableRow>::titles,
            cells: |bytes, wide| Ok(decoded::<$message>(bytes)?.cells(wide)),
            #[cfg(test)]
            message: <$message as TableRow>::NAME,
        },)*]
    };
}

fn decoded<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).context("the server's object cannot be read")
}

pub(crate) static KINDS: &[ObjectKind] = kinds! {
    "audit" "audits" "audit-records" AuditTrace;
    "claim" "claims" "clm" Claim;
    "component" "components" "comp" Component;
    "filesystem-layout" "filesystem-layouts" "fsl" FilesystemLayout;
    "firewall-rules" "firewall-rule-sets" "fwr" FirewallRules;
    "image" "images" "img" Image;
    "ip" "ips" "addresses" Ip;
    "join-ticket" "join-tickets" "join" JoinTicket;
    "lease" "leases" "lea" Lease;
    "machine" "machines" "m" Machine;
    "network" "networks" "net" Network;
    "node-allocation" "node-allocations" "nalloc" NodeAllocation;
    "partition" "partitions" "part" Partition;
    "policy" "policies" "pol" Policy;
    "pool" "pools" "hp" HostPool;
    "pool-host" "pool-hosts" "ph" PoolHost;
    "project" "projects" "proj" Project;
    "project-invite" "project-invites" "pinv" ProjectInvite;
    "project-labels" "project-label-sets" "pl" ProjectPolicyLabels;
    "quota" "quotas" "qta" Quota;
    "size" "sizes" "sz" Size;
    "size-image-constraint" "size-image-constraints" "sic" SizeImageConstraint;
    "size-reservation" "size-reservations" "sr" SizeReservation;
    "switch" "switches" "sw" Switch;
    "task" "tasks" "bmc-order" TaskInfo;
    "tenant" "tenants" "ten" Tenant;
    "tenant-invite" "tenant-invites" "tinv" TenantInvite;
    "token" "tokens" "tok" Token;
};

impl ObjectKind {
    /// `true` if only administrators see objects of the kind.
    pub(crate) fn is_admins_only(&self) -> bool {
        matches!(
            self.name,
            "component"
                | "join-ticket"
                | "policy"
                | "pool"
                | "pool-host"
                | "project-labels"
                | "size-image-constraint"
                | "switch"
                | "task"
        )
    }
}

/// Finds a kind by its singular, plural or short name, in any case.
pub(crate) fn known(text: &str) -> Result<&'static ObjectKind> {
    let wanted = text.to_ascii_lowercase().replace('_', "-");
    let found = KINDS
        .iter()
        .find(|kind| [kind.name, kind.plural, kind.short].contains(&wanted.as_str()));
    match found {
        Some(known) => Ok(known),
        None => {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            bail!(
                "{text:?} is not a kind of objects; the kinds are {}",
                names.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_go_by_several_names() {
        for (text, name) in [
            ("machines", "machine"),
            ("FSL", "filesystem-layout"),
            ("ip", "ip"),
        ] {
            assert_eq!(known(text).unwrap().name, name);
        }
        assert!(
            known("ca")
                .unwrap_err()
                .to_string()
                .contains("machine, network")
        );
    }

    #[test]
    fn rows_are_as_wide_as_their_titles() {
        for known in KINDS {
            for wide in [false, true] {
                let cells = (known.cells)(&[], wide).unwrap();
                assert_eq!(cells.len(), (known.titles)(wide).len(), "{}", known.name);
            }
        }
    }
}
