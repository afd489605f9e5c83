//! Feature levels: which commands and rules every control node knows.
//!
//! A command above the lowest level of all control nodes is refused, and a rule above it is not
//! applied, because programs of all levels must reach the same result. A change that nodes of the
//! current level would read or judge differently raises [`FEATURE_LEVEL`](crate::FEATURE_LEVEL): a new operation, or a
//! field that they would drop, gets its level in `Op::level`; a new rule asks [`feature_level`].

use proto_errors::{Error, ErrorCode};

use crate::cluster::entity::ControlNode;
use crate::command::Command;
use crate::reply::CheckResult;
use crate::tables::Tables;

/// The feature level from which a machine runs only after the switches reported its ports.
pub(crate) const TENANT_PORTS: u32 = 2;

/// The feature level from which the word of a switch's DHCP relay counts as a witness for a cable.
pub(crate) const RELAYED_PORTS: u32 = 2;

/// The feature level from which partitions may have the labels
/// [`FABRIC`](crate::meta::label::FABRIC) and [`BOND`](crate::meta::label::BOND), and allocations
/// keep the network that their image named.
pub(crate) const FABRIC_LABELS: u32 = 2;

/// The feature level from which users' children of shared super networks are bounded, management
/// addresses of switches are unique, and only proven reports of a switch hold a segment.
pub(crate) const SHARED_BOUNDS: u32 = 2;

/// The feature level from which every control node refuses SSH keys and user data of a project for its
/// firewall, and allocations of firewalls say so.
pub(crate) const CLOSED_FIREWALLS: u32 = 2;

/// The feature level from which machines whose BMC nobody reaches, or has read yet, are not on offer.
pub(crate) const REACHED_BMCS: u32 = 2;

/// The feature level from which the disks of free machines count as used after a restore, until they were
/// wiped in a boot that began after the reconciliation.
pub(crate) const DOUBTED_DISKS: u32 = 2;

/// The feature level that every control node knows; 1 until the first node has announced its level.
pub fn feature_level(tables: &Tables) -> u32 {
    lowest_level(tables).unwrap_or(1).max(1)
}

/// The lowest level that a control node announced. `None` until the first node has announced one.
pub(crate) fn lowest_level(tables: &Tables) -> Option<u32> {
    let nodes = tables.all::<ControlNode>();
    let members = nodes.filter(|node| node.joined_at.is_some() && node.removed_at.is_none());
    members.map(|member| member.level).min()
}

/// Refuses a command that not every control node knows: a node of a lower level could not decode
/// the log entry.
///
/// # Errors
/// `NotEnabled` above the lowest level of all control nodes, and those of the command's bounds.
pub fn check_enabled(tables: &Tables, command: &Command) -> CheckResult {
    crate::bounds::check(&command.op)?;
    require_level(tables, command.op.name(), command.version)
}

/// Refuses `what`, which needs a feature level that not every control node knows.
///
/// # Errors
/// `NotEnabled`, with the level that is needed.
pub(crate) fn require_level(tables: &Tables, what: &str, level: u32) -> CheckResult {
    let known = feature_level(tables);
    if level <= known {
        return Ok(());
    }
    let what = format!("{what} needs feature level {level}, but a control node knows only {known}");
    let hint = "upgrade every control node; see: metalmesh cluster status";
    Err(Error::new(ErrorCode::NotEnabled, what).hint(hint))
}
