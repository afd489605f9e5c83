//! Management addresses of switches. By them the boot server knows which leaf relays a request.

use std::net::IpAddr;

use proto_errors::{Error, ErrorCode};
use proto_types::{PartitionId, SwitchId};

use crate::levels::{SHARED_BOUNDS, feature_level};
use crate::reply::CheckResult;
use crate::switch::entity::{ReplaceMode, Switch};
use crate::tables::Tx;

/// Takes a management address for a switch. A switch that is to be replaced leaves its address to
/// its successor in the rack.
///
/// # Errors
/// `AlreadyExists` if another switch of the partition has the address.
pub(super) fn take(
    tx: &mut Tx<'_>,
    id: &SwitchId,
    partition: &PartitionId,
    rack: &str,
    address: Option<IpAddr>,
) -> CheckResult {
    let Some(address) = address.filter(|_| feature_level(tx.tables()) >= SHARED_BOUNDS) else {
        return Ok(());
    };
    // Two of an older control node keep the address: refused, both would lose control.
    let known = tx.tables().get::<Switch>(id);
    if known.is_some_and(|known| known.management_ip == Some(address)) {
        return Ok(());
    }
    let has_it = |switch: &&std::sync::Arc<Switch>| {
        switch.id != *id && switch.partition == *partition && switch.management_ip == Some(address)
    };
    let holder = tx.tables().all::<Switch>().find(has_it).cloned();
    let Some(holder) = holder else {
        return Ok(());
    };
    if holder.replace_mode == ReplaceMode::Replace && holder.rack == rack {
        let mut holder = Switch::clone(&holder);
        holder.management_ip = None;
        tx.save(holder);
        return Ok(());
    }
    let rule = format!(
        "switch \"{}\" has the management address {address} already: the boot server would take \
         the DHCP relay of neither",
        holder.id
    );
    let hint = format!(
        "give it an address of its own (management_ip of its agent); if it takes the place of the \
         other: metalmesh switch replace {}",
        holder.id
    );
    let error = Error::new(ErrorCode::AlreadyExists, rule).object("switch", id);
    Err(error.hint(hint))
}
