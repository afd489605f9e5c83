//! The boot service, for the boot server and the hammer of the published stack: DHCP, boot, token,
//! registration ([`crate::registration`]), waiting ([`crate::waiting`]) and installation of a machine.
//!
//! Each call becomes the command that our own agents' reports become.

use std::sync::Arc;

use control_convert::enums::from_event_kind;
use control_convert::token::token;
use control_convert::{parse, required};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state, refused};
use control_state::life::{BootTarget, boot_target, restored};
use control_state::{
    self as state, ErrorCode, EventKind, InstallDone, Kind, Machine, MachineSeen, Partition,
    StateError, Tables,
};
use proto_identity::AgentRole;
use proto_public::infra::v2 as infra;
use proto_public::infra::v2::boot_service_server::BootService;
use proto_types::{MacAddr, MachineId, PartitionId};
use tonic::{Request, Response, Status};

use crate::agent_stream::{self, AgentStream};
use crate::bmc::Access;
use crate::stream_plan::StreamPlan;
use crate::waiting::installation;
use crate::{RpcResult, Upstream, ok};

#[tonic::async_trait]
impl BootService for Upstream {
    async fn dhcp(
        &self,
        request: Request<infra::BootServiceDhcpRequest>,
    ) -> RpcResult<infra::BootServiceDhcpResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = parse("uuid", &request.uuid)?;
        let partition: PartitionId = parse("partition", &request.partition)?;
        caller.speaks_for(&partition)?;
        let alone = |tables: &Tables| self.alone_in_partition(tables, &partition, AgentRole::Pixie);
        self.gate.read(&caller, alone).await?;
        self.hears_partition(&partition);
        self.seen(&caller, id, partition).await?;
        ok(infra::BootServiceDhcpResponse {})
    }

    /// Refuses a machine that boots from its disk, so that it does not start the installer.
    async fn boot(
        &self,
        request: Request<infra::BootServiceBootRequest>,
    ) -> RpcResult<infra::BootServiceBootResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let mac: MacAddr = parse("mac", &request.mac)?;
        let partition: PartitionId = parse("partition", &request.partition)?;
        caller.speaks_for(&partition)?;
        let alone = |tables: &Tables| self.alone_in_partition(tables, &partition, AgentRole::Pixie);
        self.gate.read(&caller, alone).await?;
        self.hears_partition(&partition);
        let (target, boot) = self
            .gate
            .read(&caller, |tables| {
                let known = tables.require::<Partition>(&partition)?;
                let machine = state::query::machine_of_mac(tables, &partition, mac);
                if restored(tables).is_some() {
                    let what = "no installer boots before the restored state is reconciled";
                    return Err(StateError::new(ErrorCode::NotReconciled, what));
                }
                let target = machine.map_or(BootTarget::Hammer, |machine| {
                    boot_target(tables, machine.id)
                });
                Ok((target, known.boot.clone()))
            })
            .await?;
        if target != BootTarget::Hammer {
            let message = format!("the machine with {mac} does not boot from the network now");
            return Err(refused(ErrorCode::WrongPhase, message));
        }
        ok(infra::BootServiceBootResponse {
            kernel: boot.kernel_url,
            init_ram_disks: vec![boot.image_url],
            cmdline: Some(boot.commandline),
        })
    }

    async fn machine_token(
        &self,
        request: Request<infra::BootServiceMachineTokenRequest>,
    ) -> RpcResult<infra::BootServiceMachineTokenResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: MachineId = parse("uuid", &request.uuid)?;
        self.reach(&caller, id).await?;
        let alone = |tables: &Tables| {
            let machine = tables.get::<Machine>(&id);
            let partition = machine.and_then(|machine| machine.partition.as_ref());
            partition.map_or(Ok(()), |partition| {
                self.alone_in_partition(tables, partition, AgentRole::Pixie)
            })
        };
        self.gate.read(&caller, alone).await?;
        self.check_nonce(&caller, id).await?;
        let (made, secret) = self.new_machine_token(&caller, id, request).await?;
        ok(infra::BootServiceMachineTokenResponse {
            token: Some(token(&made)),
            secret,
        })
    }

    /// There is no such password: each BMC has its own.
    async fn super_user_password(
        &self,
        _request: Request<infra::BootServiceSuperUserPasswordRequest>,
    ) -> RpcResult<infra::BootServiceSuperUserPasswordResponse> {
        ok(infra::BootServiceSuperUserPasswordResponse {
            feature_disabled: true,
            super_user_password: String::new(),
        })
    }

    async fn register(
        &self,
        request: Request<infra::BootServiceRegisterRequest>,
    ) -> RpcResult<infra::BootServiceRegisterResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: MachineId = parse("uuid", &request.uuid)?;
        let partition: PartitionId = parse("partition", &request.partition)?;
        let place = self
            .gate
            .read(&caller, |tables| {
                Ok(tables
                    .get::<Machine>(&id)
                    .map(|machine| machine.partition.clone()))
            })
            .await?;
        let is_new = place.is_none();
        if place.flatten().is_some_and(|place| place != partition) {
            let message = format!("machine \"{id}\" is not in partition \"{partition}\"");
            return Err(refused(ErrorCode::MachineForeign, message));
        }
        let access = request.bmc.as_ref().map(|bmc| Access::of(id, bmc));
        let mut op = self.registration(&caller, id, &partition, request).await?;
        // Each boot gets its own token, so the token's id identifies the boot: a repeated
        // registration of the same boot changes nothing.
        op.boot_id = caller.principal.token.to_string();
        op.seen_in = is_new.then_some(partition);
        let registered = self.gate.propose(&caller, op).await?;
        self.hears_machine(&caller, id).await?;
        let registered = registered.machine().map_err(of_state)?;
        if let Some(access) = access {
            self.keep_bmc_access(&caller, access).await?;
        }
        let text = |value: Option<String>| value.unwrap_or_default();
        ok(infra::BootServiceRegisterResponse {
            uuid: id.to_string(),
            size: text(registered.size.as_ref().map(ToString::to_string)),
            partition: text(registered.partition.as_ref().map(ToString::to_string)),
        })
    }

    async fn wait(
        &self,
        request: Request<infra::BootServiceWaitRequest>,
    ) -> RpcResult<AgentStream<infra::BootServiceWaitResponse>> {
        let caller = Caller::of(&request)?;
        let id: MachineId = parse("uuid", &request.get_ref().uuid)?;
        let place = self.published.place(&id.to_string())?;
        self.waits(&caller, id).await?;
        let mut sent = None;
        let pki = self.pki.clone();
        let look = move |tables: &Tables| {
            let Some(order) = installation(&pki, tables, id) else {
                return Vec::new();
            };
            if sent.as_ref() == Some(&order) {
                return Vec::new();
            }
            let message = infra::BootServiceWaitResponse {
                allocation: Some(order.1.clone()),
            };
            sent = Some(order);
            vec![message]
        };
        let plan = StreamPlan {
            look: Box::new(look),
            claim: None,
            wakes: None,
            matters: |change| {
                matches!(
                    change.kind,
                    Kind::Machine | Kind::Image | Kind::ClusterClock
                )
            },
            beat: self.beat(&caller, id),
            place,
        };
        Ok(Response::new(
            agent_stream::open(self, &caller, plan).await?,
        ))
    }

    async fn installation_succeeded(
        &self,
        request: Request<infra::BootServiceInstallationSucceededRequest>,
    ) -> RpcResult<infra::BootServiceInstallationSucceededResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: MachineId = parse("uuid", &request.uuid)?;
        let allocation = self
            .gate
            .read(&caller, |tables| {
                let found = tables.require::<Machine>(&id)?;
                let allocation = found.allocation.as_ref().map(|allocation| allocation.id);
                let message = || format!("machine \"{id}\" is not allocated");
                allocation.ok_or_else(|| StateError::new(ErrorCode::MachineNotAllocated, message()))
            })
            .await?;
        self.hears_machine(&caller, id).await?;
        let op = InstallDone {
            id,
            allocation,
            error: None,
            step: String::new(),
            retryable: false,
            log_tail: String::new(),
            console_password: request.console_password,
            primary_disk: String::new(),
        };
        self.gate.propose(&caller, op).await?;
        ok(infra::BootServiceInstallationSucceededResponse {})
    }

    async fn send_event(
        &self,
        request: Request<infra::BootServiceSendEventRequest>,
    ) -> RpcResult<infra::BootServiceSendEventResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let event = required("event", request.event)?;
        if from_event_kind(event.event) == Some(EventKind::PhonedHome) {
            let rule = "\"Phoned Home\" is for the switch that hears the installed system";
            return Err(invalid("event", rule));
        }
        self.take_event(&caller, &request.uuid, event).await?;
        ok(infra::BootServiceSendEventResponse {})
    }
}

impl Upstream {
    /// Records that a machine asked for an address.
    async fn seen(
        &self,
        caller: &Caller,
        id: MachineId,
        partition: PartitionId,
    ) -> Result<Arc<Machine>, Status> {
        let op = MachineSeen {
            id,
            partition,
            mac: None,
            seen_at: self.gate.now(),
            to_disk: false,
            stated_at: None,
            relayed: None,
        };
        let seen = self.gate.propose(caller, op).await?;
        seen.machine().map_err(of_state)
    }

    /// Refuses a machine outside the caller's reach, as if it did not exist.
    pub(crate) async fn reach(&self, caller: &Caller, id: MachineId) -> Result<(), Status> {
        let found = self.gate.read(caller, |tables| {
            let found = tables.get::<Machine>(&id);
            found
                .filter(|machine| caller.reaches(machine.partition.as_ref()))
                .map(drop)
                .ok_or_else(|| StateError::not_found("machine", id))
        });
        found.await
    }
}
