//! Feature levels: which commands and rules all control nodes know.
//!
//! A command above the lowest level of all control nodes is refused, and a rule above it is not
//! applied: programs of all levels must come to the same result.

use proto_errors::{Error, ErrorCode};

use crate::cluster::entity::ControlNode;
use crate::command::Command;
use crate::tables::Tables;

/// The highest feature level that this code knows: commands above the lowest level of all control
/// nodes stay off until the last of them knows them.
///
/// With the feature `next-level`, which no product is built with, this is a program of the next
/// level: tests run it beside this one's.
pub const FEATURE_LEVEL: u32 = if cfg!(feature = "next-level") { 11 } else { 10 };

/// The feature level that brought records of whole calls, and with them the chain.
pub(crate) const CHAIN_LEVEL: u32 = 3;
/// The feature level that brought site policies, and rules of them in records.
pub(crate) const POLICY_LEVEL: u32 = 4;

/// The feature level that brought records of identities beside those of certificates.
pub const IDENTITY_LEVEL: u32 = 4;
/// The feature level that brought generations of the authority, and credentials of components.
pub const CA_LEVEL: u32 = 5;
/// The feature level that brought machines that register without having been seen before.
pub const SEEN_IN_LEVEL: u32 = 5;
/// The feature level that brought machines that were sent to their disk without control's word.
pub const TO_DISK_LEVEL: u32 = 6;
/// The feature level that brought what machines draw.
pub const DRAW_LEVEL: u32 = 7;
/// The feature level that brought sealed keys of the VPN.
pub const VPN_SEAL_LEVEL: u32 = 8;
/// The feature level from which an event that is told again is known.
pub(crate) const REPEAT_LEVEL: u32 = 5;
/// The feature level that brought tickets that are bound to a TPM.
pub(crate) const TPM_LEVEL: u32 = 5;
/// The feature level at which orders of a partition that is cut off wait.
pub(crate) const CUT_OFF_LEVEL: u32 = 5;
/// The feature level that brought traces of commands, machines and orders.
pub const TRACE_LEVEL: u32 = 6;

/// The feature level that brought machines that join with what their BMC holds.
pub const NONCE_LEVEL: u32 = 6;
/// The feature level that brought cables confirmed by both ends, credentials of one boot, and
/// budgets per caller. Nodes of lower levels judge these differently, so that a cluster is updated
/// to it at once, not node by node.
pub const CONFIRMED_LEVEL: u32 = 9;
/// The feature level that brought the reconciliation after a restore, and updates of tokens that
/// take a role away. Nodes of lower levels refuse less (last owners, sizes that overlap, what is
/// still in use), so that a cluster is updated to it at once, not node by node.
pub const CONTRACT_LEVEL: u32 = 10;
/// The feature level that brought marks of how far the trail was sent elsewhere.
pub const EXPORT_LEVEL: u32 = 4;

/// The feature level that every control node knows. Before the first has said what it knows it is
/// the first one: such entries of the log may be from when there were no levels.
pub fn feature_level(tables: &Tables) -> u32 {
    lowest_level(tables).unwrap_or_default().max(1)
}

/// `true` if every control node judges by the rules of [`CONTRACT_LEVEL`]; beside an older one all
/// must come to its result.
pub(crate) fn has_contract_rules(tables: &Tables) -> bool {
    feature_level(tables) >= CONTRACT_LEVEL
}

/// The same; none before the first node has said what it knows.
pub(crate) fn lowest_level(tables: &Tables) -> Option<u32> {
    let members = tables.all::<ControlNode>();
    let members = members.filter(|it| it.joined_at.is_some() && it.removed_at.is_none());
    members.map(|it| it.level).min()
}

/// Whether every control node knows a command; one that does not could not even read it.
pub fn check_enabled(tables: &Tables, command: &Command) -> std::result::Result<(), Error> {
    crate::bounds::check(&command.op)?;
    let known = feature_level(tables);
    if command.version <= known {
        return Ok(());
    }
    let what = format!(
        "{} needs feature level {}, but a control node knows only {known}",
        command.op.name(),
        command.version
    );
    let hint = "upgrade every control node; see: metalmesh cluster status";
    Err(Error::new(ErrorCode::NotEnabled, what).hint(hint))
}
