//! The VPN duty: removes released firewalls from the VPN and records the connections of the others.
//!
//! The firewalls to remove follow from the state alone, so the removal continues after a restart, on
//! another leader, and after any outage of the VPN.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use control_authz::{Permit, SystemActor};
use control_state::{Command, ForgetVpn, Op, ReportVpn, StateError, VpnMember, query};
use control_store::{ProposeError, Store, StoreError};
use control_vpn::{Vpn, VpnError, VpnNode};
use proto_types::AllocationId;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Interval between two checks for firewalls to remove.
const ROUND: Duration = Duration::from_secs(1);
/// Interval between two lists of the VPN's nodes, and pause after a failure.
const LOOK: Duration = Duration::from_secs(10);
/// Maximum removals in one round. The rest follows in the next rounds.
const LEAVING_MAX: usize = 100;
/// Maximum characters of an unreadable address that an error quotes. The rest is cut.
const ADDRESS_CHARS_MAX: usize = 64;

/// Starts the duty. It ends when `stop` is cancelled.
pub(crate) fn spawn(
    tasks: &mut JoinSet<()>,
    store: &Store,
    vpn: Option<&Arc<dyn Vpn>>,
    stop: &CancellationToken,
) {
    if let Some(vpn) = vpn {
        let duty = VpnDuty {
            store: store.clone(),
            vpn: Arc::clone(vpn),
            paused_until: Instant::now(),
            next_look: Instant::now(),
        };
        tasks.spawn(duty.run(stop.clone()));
    }
}

/// The state of the duty.
struct VpnDuty {
    store: Store,
    vpn: Arc<dyn Vpn>,
    /// End of the pause after a failure.
    paused_until: Instant,
    /// Time of the next list of nodes.
    next_look: Instant,
}

/// The reason why a round failed.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    /// The VPN's control server.
    #[error(transparent)]
    Vpn(#[from] VpnError),
    /// A node has an address that is not an IP address. Its firewall's record is left unchanged.
    #[error("node {node} has the address {text:?}, which is not an IP address")]
    Address {
        /// Number of the node.
        node: u64,
        /// The address as listed, at most `ADDRESS_CHARS_MAX` characters.
        text: String,
    },
    /// The state cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// The state cannot be written.
    #[error(transparent)]
    Write(#[from] ProposeError<StateError>),
}

/// The members of the VPN: those to remove, at most `LEAVING_MAX`, and those that stay.
struct VpnPlan {
    leaving: Vec<Arc<VpnMember>>,
    staying: Vec<Arc<VpnMember>>,
}

fn plan(tables: &control_state::Tables) -> VpnPlan {
    let leaving: Vec<_> = query::vpn_leaving(tables)
        .take(LEAVING_MAX)
        .cloned()
        .collect();
    let leaves =
        |id: AllocationId| query::vpn_leaving(tables).any(|member| member.allocation == id);
    let all = tables.all::<VpnMember>();
    let staying = all
        .filter(|member| !leaves(member.allocation))
        .cloned()
        .collect();
    VpnPlan { leaving, staying }
}

/// The change of a member's connection. `None` means that nothing changed.
///
/// # Errors
/// [`RoundError::Address`]. An address that is left out would be recorded as one that the firewall
/// has lost.
fn news(member: &VpnMember, nodes: &[VpnNode]) -> Result<Option<ReportVpn>, RoundError> {
    let key = Some(member.access.key_id.as_str());
    let node = nodes.iter().find(|node| node.key.as_deref() == key);
    // A firewall that has not joined yet, or has left, has no node and so no addresses.
    let ips = node.map_or_else(|| Ok(Vec::new()), addresses)?;
    let connected = node.is_some_and(|node| node.online);
    let is_changed = connected != member.connected || ips != member.ips;
    Ok(is_changed.then_some(ReportVpn {
        allocation: member.allocation,
        connected,
        ips,
    }))
}

/// The addresses of a node.
fn addresses(node: &VpnNode) -> Result<Vec<IpAddr>, RoundError> {
    let parse = |text: &String| {
        text.parse().map_err(|_| RoundError::Address {
            node: node.id,
            text: text.chars().take(ADDRESS_CHARS_MAX).collect(),
        })
    };
    node.addresses.iter().map(parse).collect()
}

impl VpnDuty {
    async fn run(mut self, stop: CancellationToken) {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = rounds.tick() => {}
            }
            if self.store.is_leader()
                && Instant::now() >= self.paused_until
                && let Err(error) = self.round().await
            {
                tracing::warn!(error = %error, "the VPN does not follow the firewalls");
                self.paused_until = Instant::now() + LOOK;
            }
        }
    }

    /// Removes released firewalls, then records changed connections.
    ///
    /// # Errors
    /// The last node that cannot be read, after all members were compared, or the first other error
    /// at once.
    async fn round(&mut self) -> Result<(), RoundError> {
        let plan = self.store.read_local(plan)?;
        self.remove_leaving(&plan.leaving).await?;
        if plan.staying.is_empty() || Instant::now() < self.next_look {
            return Ok(());
        }
        self.next_look = Instant::now() + LOOK;
        let nodes = self.vpn.nodes(None).await?;
        // A node that cannot be read must not hide the changes of the others.
        let mut unreadable = Ok(());
        for member in &plan.staying {
            match news(member, &nodes) {
                Ok(Some(report)) => self.propose(report).await?,
                Ok(None) => {}
                Err(error) => unreadable = Err(error),
            }
        }
        unreadable
    }

    /// Removes the firewalls from the VPN. One that the VPN refuses to remove does not block the others.
    ///
    /// # Errors
    /// The last refusal, after all firewalls were tried, or the first other error at once.
    async fn remove_leaving(&self, leaving: &[Arc<VpnMember>]) -> Result<(), RoundError> {
        let mut refused = Ok(());
        for member in leaving {
            let user = member.project.to_string();
            match self.vpn.remove(&user, &member.access.key_id).await {
                Ok(()) => {}
                Err(error @ VpnError::Refused(_)) => {
                    refused = Err(error.into());
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            // The state forgets the member only after the VPN removed it: a crash between the two
            // repeats the removal, which is harmless.
            let allocation = member.allocation;
            self.propose(ForgetVpn { allocation }).await?;
            tracing::info!(machine = %member.machine, "a firewall left the VPN");
        }
        refused
    }

    async fn propose(&self, op: impl Into<Op>) -> Result<(), ProposeError<StateError>> {
        let permit = Permit::system(SystemActor::Reconcile);
        let command = Command::new(self.store.now(), "reconcile", op);
        match self.store.propose(&permit, &command).await {
            // Another node leads by now and carries out the same duty.
            Err(ProposeError::Store(StoreError::NotLeader { .. } | StoreError::ShutDown)) => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use control_state::VpnAccess;
    use proto_types::{MachineId, ProjectId};
    use uuid::Uuid;

    use super::*;

    fn member(key: &str) -> VpnMember {
        VpnMember {
            allocation: AllocationId::new(Uuid::from_u128(1)),
            machine: MachineId::new(Uuid::from_u128(2)),
            project: ProjectId::new(Uuid::from_u128(3)),
            access: VpnAccess {
                key_id: key.to_owned(),
                ..VpnAccess::default()
            },
            connected: true,
            ips: vec!["100.64.0.1".parse().unwrap(), "fd7a::1".parse().unwrap()],
        }
    }

    fn node(key: &str, addresses: &[&str]) -> VpnNode {
        VpnNode {
            id: 7,
            key: Some(key.to_owned()),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            online: true,
            ..VpnNode::default()
        }
    }

    #[test]
    fn only_changes_are_reported() {
        let nodes = [
            node("other", &["100.64.0.9"]),
            node("k", &["100.64.0.1", "fd7a::1"]),
        ];
        assert!(news(&member("k"), &nodes).unwrap().is_none());
        let gone = news(&member("k"), &nodes[..1]).unwrap().unwrap();
        assert_eq!((gone.connected, gone.ips), (false, Vec::new()));
    }

    #[test]
    fn an_unreadable_address_is_an_error_and_not_a_lost_one() {
        let nodes = [node("k", &["100.64.0.1", "fd7a::x"])];
        let error = news(&member("k"), &nodes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "node 7 has the address \"fd7a::x\", which is not an IP address"
        );
    }
}
