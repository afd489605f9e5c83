//! Boot servers: what machines boot, who asked for a boot, boot tickets.

use std::time::Duration;

use control_state::life::{self, BootTarget as Target, MachineBoot as Boot};
use control_state::{BootConfiguration, Machine, MachineSeen, Partition, RelayedPort};
use proto_link::{LinkStatus, Peer, Sink};
use proto_mesh::{
    BootDesired, BootDesiredRequest, BootRelay, BootSeenRequest, BootSeenResponse, BootService,
    BootTarget, BootTicket, BootTicketRequest, LeaseReport, LeaseReportResponse, MachineBoot,
    boot_service,
};
use proto_types::Timestamp;

use crate::desired::{self, Desire, Fence};
use crate::leases::LEASES_MAX;
use crate::parts::GatewayParts;
use crate::wakes::Concern;
use crate::{access, status};

/// Least time between two looks for a pixie. They are at all machines of the partition, and what
/// is found is what pixie goes by without control; what boots now it asks.
const PAUSE: Duration = Duration::from_millis(250);

/// The desired state of a pixie, as read from the state.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BootState {
    boot: BootConfiguration,
    machines: Vec<Boot>,
    relays: Vec<life::BootRelay>,
}

impl BootService for GatewayParts {
    async fn desired(
        &self,
        peer: &Peer,
        _request: BootDesiredRequest,
        out: Sink<'_, BootDesired>,
    ) -> Result<(), LinkStatus> {
        let partition = access::pixie(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        let desire = Desire {
            look: || {
                desired::at_tables(self, |tables| {
                    let known = tables.require::<Partition>(&partition);
                    let known = known.map_err(|e| status::refused(&e))?;
                    let desired = BootState {
                        boot: known.boot.clone(),
                        machines: life::boot_desired(tables, &partition),
                        relays: life::boot_relays(tables, &partition),
                    };
                    Ok(Some(desired))
                })
            },
            message: |fence: Fence, state: &BootState| {
                let boot = &state.boot;
                let desired = BootDesired {
                    term: fence.term,
                    generation: fence.generation,
                    commandline: boot.commandline.clone(),
                    kernel_url: boot.kernel_url.clone(),
                    image_url: boot.image_url.clone(),
                    control: self.control(),
                    machines: state.machines.iter().map(message).collect(),
                    relays: state.relays.iter().map(relay).collect(),
                    seal: None,
                };
                self.sealed(peer, desired)
            },
            concern: Concern::Boots(partition.clone()),
            beside: None,
            pause: PAUSE,
        };
        desired::stream(self, desire, out).await
    }

    async fn seen(
        &self,
        peer: &Peer,
        request: BootSeenRequest,
    ) -> Result<BootSeenResponse, LinkStatus> {
        let partition = access::pixie(peer)?;
        let now = self.store.now();
        self.presence.heard_partition(&partition, now);
        let id = request.machine_uuid.parse().map_err(status::parse)?;
        let seen_at = seen_at(&request, now);
        let mac = request.mac.parse().map_err(status::parse)?;
        let stated_at = Timestamp::from_ms(request.seen_ms);
        let is_stated = request.seen_ms != 0;
        // A port that cannot be is no port: the boot counts all the same.
        let relayed = request.relay_switch.parse().ok().map(|switch| RelayedPort {
            switch,
            port: request.relay_port.clone(),
        });
        self.propose(
            peer,
            MachineSeen {
                id,
                partition,
                mac: Some(mac),
                seen_at,
                to_disk: request.to_disk,
                stated_at: is_stated.then_some(stated_at),
                relayed,
            },
        )
        .await?;
        let (target, traceparent) = self.look(|t| {
            let machine = t.get::<Machine>(&id);
            // A boot of before is not for the call that the machine is on its way for now.
            let trace = machine.filter(|machine| machine.since <= seen_at);
            let trace = trace.and_then(|machine| machine.trace.clone());
            (target(life::boot_target(t, id)), trace)
        })?;
        Ok(BootSeenResponse {
            target: target.into(),
            traceparent: traceparent.unwrap_or_default(),
        })
    }

    async fn issue_ticket(
        &self,
        peer: &Peer,
        request: BootTicketRequest,
    ) -> Result<BootTicket, LinkStatus> {
        let partition = access::pixie(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        let about = format!("machine {} mac {}", request.machine_uuid, request.mac);
        self.audited(
            &boot_service::ISSUE_TICKET,
            peer,
            about,
            |shared| async move {
                let machine = request.machine_uuid.parse().map_err(status::parse)?;
                let mac = request.mac.parse().map_err(status::parse)?;
                let id = peer
                    .id()
                    .ok_or_else(|| LinkStatus::unauthenticated("no certificate"))?;
                let ticket = shared.pki.issue_boot_ticket(id, partition, machine, mac);
                let ticket = ticket.await.map_err(status::pki)?;
                Ok(BootTicket {
                    ticket_id: ticket.id.to_string(),
                    secret: ticket.secret.to_vec(),
                    expires_ms: ticket.expires_at.ms(),
                    roots: shared.pki.roots().iter().map(|der| der.to_vec()).collect(),
                })
            },
        )
        .await
    }

    async fn report_leases(
        &self,
        peer: &Peer,
        request: LeaseReport,
    ) -> Result<LeaseReportResponse, LinkStatus> {
        let partition = access::pixie(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        if request.leases.len() > LEASES_MAX {
            return Err(LinkStatus::resource_exhausted(
                "too many leases in one report",
            ));
        }
        self.leases
            .report(partition, &request.leases, self.store.now());
        Ok(LeaseReportResponse {})
    }
}

/// When the machine asked, by control's clock: as long before now as pixie says by its own.
fn seen_at(request: &BootSeenRequest, now: Timestamp) -> Timestamp {
    match (request.seen_ms, request.told_ms) {
        (0, _) => now,
        (seen_ms, 0) => Timestamp::from_ms(seen_ms).min(now),
        (seen_ms, told_ms) => {
            let age_ms = told_ms.saturating_sub(seen_ms);
            Timestamp::from_ms(now.ms().saturating_sub(age_ms))
        }
    }
}

fn relay(relay: &life::BootRelay) -> BootRelay {
    BootRelay {
        switch: relay.switch.to_string(),
        address: relay.address.to_string(),
    }
}

fn message(boot: &Boot) -> MachineBoot {
    MachineBoot {
        machine_uuid: boot.machine.to_string(),
        macs: boot.macs.iter().map(ToString::to_string).collect(),
        target: target(boot.target).into(),
    }
}

fn target(target: Target) -> BootTarget {
    match target {
        Target::Hammer => BootTarget::Hammer,
        Target::Disk => BootTarget::Disk,
        Target::None => BootTarget::None,
    }
}
