//! Control over the mesh.

use std::time::Duration;

use agents_kit::{Agent, Origin, Steps, run_desired};
use base_telemetry::traces::{Span, SpanKind, Spans, TraceContext, now_ns, ns_of_ms};
use futures::future::BoxFuture;
use pixie_boot::{InstallerSource, Machines, Relays, Target};
use proto_mesh::{
    BmcLease as MeshLease, BootDesired, BootDesiredRequest, BootSeenRequest, BootServiceClient,
    BootTarget, BootTicketRequest, LeaseReport, LinkStatus,
};
use proto_types::{MacAddr, MachineId};
use tokio_util::sync::CancellationToken;

use crate::DesiredSink;
use crate::clock::now_ms;
use crate::control::{BmcLease, Control, ControlError, Desired, Seen, SwitchPort, Ticket};

/// Deadline of a call that a booting machine waits for.
const FRONT_TIME: Duration = Duration::from_secs(8);
/// Deadline of a call in the background.
const BACKGROUND_TIME: Duration = Duration::from_secs(30);

/// The boot service of control.
#[derive(Debug)]
pub struct MeshControl {
    client: BootServiceClient,
    steps: Steps,
    spans: Spans,
}

impl MeshControl {
    /// Calls with the agent's session.
    #[must_use]
    pub fn new(agent: &Agent) -> Self {
        Self {
            client: agent.client(),
            steps: agent.steps(),
            spans: agent.spans(),
        }
    }
}

impl MeshControl {
    /// Adds a span for a boot to the trace of the API call that the machine boots for.
    fn told(&self, traceparent: &str, seen: &Seen, target: Target) {
        // Empty for a boot that no traced call has caused.
        let Ok(call) = traceparent.parse::<TraceContext>() else {
            return;
        };
        let name = match target {
            Target::Hammer => "boot hammer",
            Target::Disk => "boot disk",
            Target::Nothing => "boot nothing",
        };
        self.spans.put(Span {
            context: call.child(),
            parent: Some(call.span),
            name: name.into(),
            kind: SpanKind::Consumer,
            began_ns: ns_of_ms(seen.seen_ms),
            ended_ns: now_ns(),
            attributes: vec![("metalmesh.machine", seen.machine.to_string())],
            events: Vec::new(),
            error: None,
        });
    }
}

impl Control for MeshControl {
    fn seen(&self, seen: Seen) -> BoxFuture<'_, Result<Option<Target>, ControlError>> {
        Box::pin(async move {
            let relayed = seen.relayed.clone().unwrap_or_else(|| SwitchPort {
                switch: String::new(),
                port: String::new(),
            });
            let request = BootSeenRequest {
                machine_uuid: seen.machine.to_string(),
                mac: seen.mac.to_string(),
                arch: seen.arch.into(),
                seen_ms: seen.seen_ms,
                to_disk: seen.to_disk,
                told_ms: now_ms(),
                relay_switch: relayed.switch,
                relay_port: relayed.port,
            };
            let client = self.client.with_deadline(FRONT_TIME);
            let response = client.seen(request).await.map_err(|e| error(&e));
            self.steps.ended("boot_seen", &response);
            let response = response?;
            let target = target(response.target());
            self.told(&response.traceparent, &seen, target);
            Ok(Some(target))
        })
    }

    fn issue_ticket(
        &self,
        machine: MachineId,
        mac: MacAddr,
    ) -> BoxFuture<'_, Result<Ticket, ControlError>> {
        Box::pin(async move {
            let request = BootTicketRequest {
                machine_uuid: machine.to_string(),
                mac: mac.to_string(),
            };
            let client = self.client.with_deadline(FRONT_TIME);
            let ticket = client.issue_ticket(request).await.map_err(|e| error(&e));
            self.steps.ended("boot_ticket", &ticket);
            let ticket = ticket?;
            Ok(Ticket {
                id: ticket.ticket_id,
                secret: ticket.secret,
                roots: ticket.roots,
            })
        })
    }

    fn report_leases(&self, leases: Vec<BmcLease>) -> BoxFuture<'_, Result<(), ControlError>> {
        Box::pin(async move {
            let leases = leases
                .into_iter()
                .map(|lease| MeshLease {
                    mac: lease.mac.to_string(),
                    address: lease.address.to_string(),
                    // A duration, not a time: the clocks of pixie and control may differ.
                    remaining_ms: lease.expires_ms.saturating_sub(now_ms()).max(1),
                })
                .collect();
            let client = self.client.with_deadline(BACKGROUND_TIME);
            client
                .report_leases(LeaseReport { leases })
                .await
                .map(drop)
                .map_err(|e| error(&e))
        })
    }
}

fn error(status: &LinkStatus) -> ControlError {
    if status.is_transient() {
        ControlError::Away(status.to_string())
    } else {
        ControlError::Refused(status.to_string())
    }
}

fn target(target: BootTarget) -> Target {
    match target {
        BootTarget::Hammer => Target::Hammer,
        BootTarget::Disk => Target::Disk,
        // One that only a newer control knows decodes as unspecified. Left out of the table, the
        // machine would count as unknown and boot the installer, also over a tenant's system.
        BootTarget::None | BootTarget::Unspecified => Target::Nothing,
    }
}

/// Decodes a desired state. Malformed machines are left out and logged: one of them must not keep
/// the others from booting. `fallback` has the addresses of control if the message names none.
#[must_use]
pub fn desired(message: &BootDesired, fallback: &[String]) -> Desired {
    let mut machines = Machines::default();
    for machine in &message.machines {
        let Ok(id) = machine.machine_uuid.parse::<MachineId>() else {
            tracing::warn!(machine = machine.machine_uuid, "malformed machine left out");
            continue;
        };
        if machine.target() == BootTarget::Unspecified {
            tracing::warn!(machine = %id, "unknown boot target: the machine boots nothing");
        }
        let macs = machine
            .macs
            .iter()
            .filter_map(|mac| mac.parse::<MacAddr>().ok());
        machines.insert(id, macs, target(machine.target()));
    }
    let control = if message.control.is_empty() {
        fallback.to_vec()
    } else {
        message.control.clone()
    };
    Desired {
        generation: message.generation,
        installer: InstallerSource::of(&message.kernel_url, &message.image_url),
        commandline: message.commandline.clone(),
        control,
        machines,
        relays: relays(message),
    }
}

/// The relays of a desired state. One without an IPv4 address relays nothing.
fn relays(message: &BootDesired) -> Relays {
    let relays = message.relays.iter();
    Relays::new(
        relays.filter_map(|relay| Some((relay.address.parse().ok()?, relay.switch.clone()))),
    )
}

/// Follows the desired state until `stop`, starting with the one on disk. `control` has the
/// addresses of control if a message names none.
pub async fn follow(
    agent: Agent,
    sink: DesiredSink,
    control: Vec<String>,
    stop: CancellationToken,
) {
    let client: BootServiceClient = agent.client();
    let open = || client.desired(BootDesiredRequest {});
    let on = |message: BootDesired, origin: Origin| {
        let desired = desired(&message, &control);
        let (generation, machines) = (desired.generation, desired.machines.len());
        tracing::info!(generation, machines, ?origin, "desired state");
        sink.set(desired, origin == Origin::Live);
        std::future::ready(())
    };
    run_desired(&agent, open, agent.last_good("boot"), on, stop).await;
}

#[cfg(test)]
mod tests {
    use proto_mesh::MachineBoot;

    use super::*;

    #[test]
    fn malformed_machines_do_not_keep_others_from_booting() {
        let uuid = "6f1c0001-0000-4000-8000-525400770101";
        let newer = "6f1c0001-0000-4000-8000-525400770102";
        let machine = |uuid: &str, target: BootTarget| MachineBoot {
            machine_uuid: uuid.into(),
            macs: vec!["52:54:00:77:01:01".into(), "x".into()],
            target: target.into(),
        };
        let message = BootDesired {
            generation: 3,
            machines: vec![
                machine("nonsense", BootTarget::Disk),
                MachineBoot {
                    machine_uuid: newer.into(),
                    macs: vec![],
                    // A target of a newer control.
                    target: 99,
                },
                machine(uuid, BootTarget::Disk),
            ],
            ..BootDesired::default()
        };
        let desired = desired(&message, &["10.90.0.1:4443".into()]);
        assert_eq!(desired.machines.len(), 2);
        let unknown = desired.machines.find(newer.parse().ok(), MacAddr([2; 6]));
        assert_eq!(unknown.unwrap().target, Target::Nothing);
        let mac = "52:54:00:77:01:01".parse().unwrap();
        assert_eq!(
            desired.machines.find(None, mac).unwrap().target,
            Target::Disk
        );
        assert_eq!(desired.control, ["10.90.0.1:4443"]);
        // A state that an older control signed names no URLs.
        assert_eq!(desired.installer, InstallerSource::Own);
    }

    #[test]
    fn only_what_may_pass_counts_as_away() {
        // Too many calls for now: the spool keeps the event and tells it again.
        for passes in [
            LinkStatus::unavailable("x"),
            LinkStatus::resource_exhausted("x"),
        ] {
            assert!(matches!(error(&passes), ControlError::Away(_)), "{passes}");
        }
        assert!(matches!(
            error(&LinkStatus::permission_denied("x")),
            ControlError::Refused(_)
        ));
    }
}
