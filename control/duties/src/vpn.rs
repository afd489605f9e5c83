//! What the leader does about the VPN: firewalls that were released leave it, and what is seen of
//! the others is written down.
//!
//! Who must leave follows from the state alone, so that it goes on after a restart, on whatever
//! node leads then, and after the VPN was away for as long as it likes.

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

/// How often is looked who must leave.
const ROUND: Duration = Duration::from_secs(1);
/// How often the VPN is asked who is there, and how long it is left alone after it failed.
const LOOK: Duration = Duration::from_secs(10);
/// How many leave in one round.
const LEAVING_MAX: usize = 100;

/// Starts the duty; it ends when `stop` is cancelled.
pub(crate) fn spawn(
    tasks: &mut JoinSet<()>,
    store: &Store,
    vpn: Option<&Arc<dyn Vpn>>,
    stop: &CancellationToken,
) {
    if let Some(vpn) = vpn {
        let duty = Duty {
            store: store.clone(),
            vpn: Arc::clone(vpn),
            paused_until: Instant::now(),
            next_look: Instant::now(),
        };
        tasks.spawn(duty.run(stop.clone()));
    }
}

struct Duty {
    store: Store,
    vpn: Arc<dyn Vpn>,
    /// After a failure.
    paused_until: Instant,
    next_look: Instant,
}

/// Who is in the VPN, and who of them must leave.
struct Plan {
    leaving: Vec<Arc<VpnMember>>,
    staying: Vec<Arc<VpnMember>>,
}

fn plan(tables: &control_state::Tables) -> Plan {
    let leaving: Vec<_> = query::vpn_leaving(tables)
        .take(LEAVING_MAX)
        .cloned()
        .collect();
    let leaves = |id: AllocationId| query::vpn_leaving(tables).any(|it| it.allocation == id);
    let all = tables.all::<VpnMember>();
    let staying = all.filter(|it| !leaves(it.allocation)).cloned().collect();
    Plan { leaving, staying }
}

/// What is to be written down of a member; nothing when nothing changed.
fn news(member: &VpnMember, nodes: &[VpnNode]) -> Option<ReportVpn> {
    let key = Some(member.access.key_id.as_str());
    let node = nodes.iter().find(|it| it.key.as_deref() == key);
    let addresses = node.map(|it| it.addresses.as_slice()).unwrap_or_default();
    let ips: Vec<IpAddr> = addresses.iter().filter_map(|it| it.parse().ok()).collect();
    let connected = node.is_some_and(|it| it.online);
    (connected != member.connected || ips != member.ips).then_some(ReportVpn {
        allocation: member.allocation,
        connected,
        ips,
    })
}

impl Duty {
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

    async fn round(&mut self) -> anyhow::Result<()> {
        let plan = self.store.read_local(plan)?;
        self.see_off(&plan.leaving).await?;
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

    /// Whom the VPN refuses to let go keeps nobody else in.
    async fn see_off(&self, leaving: &[Arc<VpnMember>]) -> anyhow::Result<()> {
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
            // Another node leads by now, and has the same duty.
            Err(ProposeError::Store(StoreError::NotLeader { .. } | StoreError::ShutDown)) => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}
