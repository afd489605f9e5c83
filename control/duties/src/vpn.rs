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
fn news(member: &VpnMember, nodes: &[VpnNode]) -> Option<ReportVpn> {
    let key = Some(member.access.key_id.as_str());
    let node = nodes.iter().find(|node| node.key.as_deref() == key);
    let addresses = node
        .map(|node| node.addresses.as_slice())
        .unwrap_or_default();
    let ips: Vec<IpAddr> = addresses
        .iter()
        .filter_map(|address| address.parse().ok())
        .collect();
    let connected = node.is_some_and(|node| node.online);
    (connected != member.connected || ips != member.ips).then_some(ReportVpn {
        allocation: member.allocation,
        connected,
        ips,
    })
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
    async fn round(&mut self) -> Result<(), RoundError> {
        let plan = self.store.read_local(plan)?;
        self.remove_leaving(&plan.leaving).await?;
        if plan.staying.is_empty() || Instant::now() < self.next_look {
            return Ok(());
        }
        self.next_look = Instant::now() + LOOK;
        let nodes = self.vpn.nodes(None).await?;
        for member in &plan.staying {
            if let Some(report) = news(member, &nodes) {
                self.propose(report).await?;
            }
        }
        Ok(())
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
