//! Machines on their way from the network to a tenant, for the boot server and hammer of the
//! published stack.
//!
//! What they say becomes the commands that agents of ours give. What their contract has no word
//! for is told by what they do: their hammer wipes every disk before it waits, so that its waiting
//! is the report of the wipe; and it registers once a boot.

use std::collections::BTreeSet;
use std::sync::Arc;

use control_convert::enums::from_event_kind;
use control_convert::token::{life_ms, token};
use control_convert::vpn_key::vpn_key;
use control_convert::{from_labels, parse, required};
use control_gate::Caller;
use control_gate::WantedToken;
use control_gate::principal::WantedRights;
use control_gate::refusal::{invalid, of_state, refused};
use control_pki::Pki;
use control_state::life::{BootTarget, Nonce, boot_target, is_left_alone, restored};
use control_state::{
    self as state, CreateMachineToken, DiskWipe, ErrorCode, EventKind, EventLog, Hardware,
    InstallDone, Kind, Machine, MachineEvent, MachineSeen, Partition, Phase, RegisterMachine,
    StateError, Tables, WipeDone,
};
use proto_identity::AgentRole;
use proto_public::infra::v2 as infra;
use proto_public::infra::v2::boot_service_server::BootService;
use proto_types::{MacAddr, MachineId, PartitionId};
use tonic::{Request, Response, Status};

use crate::agent_stream::{self, AgentStream, Beat, StreamPlan};
use crate::bmc::Access;
use crate::convert::{from_bios, from_fru, from_hardware, order};
use crate::{RpcResult, Upstream, ok};

/// Number of switches that a machine of the published stack is connected to.
const SWITCHES: usize = 2;
/// Wipe method on record when the hammer reports only the end of a wipe.
const WIPE_METHOD: &str = "published-hammer";

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

    /// A machine that shall boot from its disk gets no answer that it could boot.
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

    /// No password opens more than one BMC here, so there is none to hand out.
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
        // The token was made for this boot: a registration that is told again is of the same.
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

/// A machine of the published stack hears two switches, unless its partition says how many uplinks
/// its machines have: those are counted when it is offered.
fn check_switches(
    tables: &Tables,
    id: MachineId,
    partition: &PartitionId,
    hardware: &Hardware,
) -> Result<(), StateError> {
    let uplinks = tables
        .get::<Partition>(partition)
        .and_then(|partition| partition.uplinks());
    let neighbours = hardware.nics.iter().flat_map(|nic| &nic.neighbours);
    let names = neighbours.map(|neighbour| neighbour.system_name.as_str());
    let heard: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    if uplinks.is_some() || heard.len() == SWITCHES {
        return Ok(());
    }
    let message = format!(
        "machine \"{id}\" hears {} switches, not {SWITCHES}: {heard:?}",
        heard.len()
    );
    Err(StateError::new(ErrorCode::NotTwoSwitches, message).object("machine", id))
}

/// The installation that hammer must carry out: the attempt, and the allocation for the contract.
fn installation(
    pki: &Pki,
    tables: &Tables,
    id: MachineId,
) -> Option<(u32, proto_public::api::v2::MachineAllocation)> {
    let machine = tables.get::<Machine>(&id)?;
    let allocation = machine.allocation.as_ref()?;
    // After a restore the disks may be another tenant's.
    let is_held = restored(tables).is_some() || is_left_alone(machine);
    (machine.phase == Phase::Installing && !is_held).then(|| {
        (
            allocation.install.attempt,
            order(tables, machine, allocation, |member| vpn_key(pki, member)),
        )
    })
}

impl Upstream {
    /// A machine asked for an address or a boot.
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
        };
        let seen = self.gate.propose(caller, op).await?;
        seen.machine().map_err(of_state)
    }

    /// A machine that is there for the caller's token.
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

    /// A token for hammer of the published stack: it speaks for one machine. That an agent may
    /// have it made is what the contract says of the method, not a right of the agent's own.
    async fn new_machine_token(
        &self,
        caller: &Caller,
        machine: MachineId,
        request: infra::BootServiceMachineTokenRequest,
    ) -> Result<(Arc<state::Token>, String), Status> {
        let role = state::EditorViewer::Editor;
        let rights = WantedRights {
            machine_roles: [(machine.to_string(), role)].into(),
            ..WantedRights::default()
        };
        let warrant = self
            .gate
            .warrant(caller, &request.user, &rights.rights())
            .await?;
        let wanted = WantedToken {
            user: request.user,
            description: format!("machine {machine}"),
            labels: from_labels(request.labels),
            life_ms: life_ms(request.expires)?,
            rights,
            warrant,
        };
        let token = self.gate.new_token(caller, wanted);
        let op = CreateMachineToken { token, machine };
        self.gate.make_token(caller, op).await
    }

    /// The contract has no field for what a machine reads in its BMC: where the partition demands
    /// that, a hammer of the published stack gets no token.
    async fn check_nonce(&self, caller: &Caller, id: MachineId) -> Result<(), Status> {
        let is_demanded = self
            .gate
            .read(caller, |tables| Ok(Nonce::of(tables, id).is_demanded));
        if !is_demanded.await? {
            return Ok(());
        }
        let message = format!(
            "machine \"{id}\" must return what its BMC holds, which the published hammer cannot"
        );
        let hint = "boot metalmesh-hammer in this partition, or take the demand back: \
                    metalmesh partition update <id> --require-bmc-nonce false";
        let error = StateError::new(ErrorCode::NonceRefused, message).object("machine", id);
        Err(of_state(error.hint(hint)))
    }

    async fn registration(
        &self,
        caller: &Caller,
        id: MachineId,
        partition: &PartitionId,
        request: infra::BootServiceRegisterRequest,
    ) -> Result<RegisterMachine, Status> {
        let hardware = required("hardware", request.hardware)?;
        let bios = required("bios", request.bios)?;
        let read = |tables: &Tables| {
            let hardware = match from_hardware(tables, partition, hardware) {
                Ok(hardware) => hardware,
                Err(refused) => return Ok(Err(refused)),
            };
            check_switches(tables, id, partition, &hardware)?;
            Ok(Ok(hardware))
        };
        let hardware = self.gate.read(caller, read).await??;
        let bmc = request.bmc.unwrap_or_default();
        Ok(RegisterMachine {
            id,
            seen_in: None,
            hammer_version: request.metal_hammer_version,
            boot_id: String::new(),
            hardware,
            bios: from_bios(bios),
            fru: from_fru(request.fru),
            bmc_address: bmc.address,
            bmc_mac: bmc.mac,
            bmc_version: bmc.version,
        })
    }

    /// Hammer waits: its disks are wiped, and it is on offer.
    async fn waits(&self, caller: &Caller, id: MachineId) -> Result<(), Status> {
        self.hears_machine(caller, id).await?;
        let wiped = self
            .gate
            .read(caller, |tables| {
                let found = tables.require::<Machine>(&id)?;
                if restored(tables).is_some() {
                    // It may be another machine's hammer by now, with a token of the backup.
                    return Ok(None);
                }
                let fixed = found.hardware.disks.iter().filter(|disk| disk.is_fixed());
                let wiped = fixed.map(|disk| DiskWipe {
                    name: disk.name.clone(),
                    serial: disk.serial.clone(),
                    method: WIPE_METHOD.to_owned(),
                    ..DiskWipe::default()
                });
                Ok((found.phase == Phase::Wiping).then(|| wiped.collect()))
            })
            .await?;
        if let Some(disks) = wiped {
            self.gate.propose(caller, WipeDone { id, disks }).await?;
        }
        let is_news = self.gate.read(caller, |tables| {
            let found = tables.require::<Machine>(&id)?;
            let log = tables.get::<EventLog>(&id).and_then(|log| log.state);
            Ok(found.phase == Phase::Waiting && log != Some(EventKind::Waiting))
        });
        if is_news.await? {
            let op = MachineEvent {
                id,
                kind: EventKind::Waiting,
                message: String::new(),
                time: self.gate.now(),
            };
            self.gate.propose(caller, op).await?;
        }
        Ok(())
    }

    /// Says that a machine is there as long as its stream stands.
    fn beat(&self, caller: &Caller, id: MachineId) -> Beat {
        let (upstream, caller) = (self.clone(), caller.clone());
        Box::new(move || {
            let (upstream, caller) = (upstream.clone(), caller.clone());
            Box::pin(async move { upstream.hears_machine(&caller, id).await })
        })
    }
}
