//! Machines that run hammer.

use std::time::Duration;

use control_state::life::{self, MachineOrder as Order};
use control_state::{
    Bios, BlockDevice, Certificate, Cpu, DiskWipe, ErrorCode, EventKind, Firmware, Fru, Gpu,
    Hardware, InstallDone, Machine, MachineEvent as Event, Neighbour, Nic, Phase, RegisterMachine,
    StateError, WipeDone, WipeLevel,
};
use proto_link::{LinkStatus, Peer, Sink};
use proto_mesh::machine_order::{self as wire, Order as WireOrder};
use proto_mesh::{
    InstallReport, InstallReportResponse, MachineEvent, MachineEventResponse, MachineOrder,
    MachineOrdersRequest, MachineRegisterRequest, MachineRegisterResponse, MachineService,
    ProjectIdentityRequest, ProjectIdentityResponse, WipeReport, WipeReportResponse,
    machine_service,
};
use proto_types::{MachineId, Timestamp};

use crate::desired::{self, Desire, Fence};
use crate::parts::GatewayParts;
use crate::wakes::Concern;
use crate::{access, convert, install, status};

/// How much of hammer's log travels into the state, bytes.
const LOG_TAIL_MAX: usize = 16 * 1024;

impl MachineService for GatewayParts {
    async fn register(
        &self,
        peer: &Peer,
        request: MachineRegisterRequest,
    ) -> Result<MachineRegisterResponse, LinkStatus> {
        let id = access::machine(peer)?;
        self.hears_hammer(peer, id)?;
        let about = format!("machine {id}");
        self.audited(
            &machine_service::REGISTER,
            peer,
            about,
            |shared| async move {
                let op = inventory(id, request)?;
                registered(shared.propose(peer, op).await?)
            },
        )
        .await
    }

    async fn orders(
        &self,
        peer: &Peer,
        _request: MachineOrdersRequest,
        out: Sink<'_, MachineOrder>,
    ) -> Result<(), LinkStatus> {
        let id = access::machine(peer)?;
        self.hears_hammer(peer, id)?;
        let desire = Desire {
            look: || {
                desired::at_tables(self, |tables| match life::machine_order(tables, id) {
                    Order::Nothing => Ok(None),
                    order => {
                        let epoch = life::machine_epoch(tables, id);
                        Ok(Some((order, epoch, life::epoch_era(tables, id))))
                    }
                })
            },
            message: |fence: Fence, (order, epoch, era): &(Order, u64, u64)| MachineOrder {
                term: fence.term,
                generation: fence.generation,
                order: self.order(order),
                epoch: *epoch,
                era: *era,
            },
            concern: Concern::Machine(id),
            beside: None,
            pause: Duration::ZERO,
        };
        desired::stream(self, desire, out).await
    }

    async fn event(
        &self,
        peer: &Peer,
        request: MachineEvent,
    ) -> Result<MachineEventResponse, LinkStatus> {
        let id = access::machine(peer)?;
        let kind: EventKind = request.event.parse().map_err(|e| status::refused(&e))?;
        if kind == EventKind::PhonedHome {
            // That is for the installed system to say, under its own identity.
            let code = ErrorCode::PermissionDenied;
            return Err(status::refused(&StateError::new(code, code.title())));
        }
        self.hears_hammer(peer, id)?;
        if self.look(|t| life::event_is_heartbeat(t, id, kind))? {
            return Ok(MachineEventResponse {});
        }
        let time = if request.time_ms == 0 {
            self.store.now()
        } else {
            Timestamp::from_ms(request.time_ms)
        };
        self.propose(
            peer,
            Event {
                id,
                kind,
                message: request.message,
                time,
            },
        )
        .await?;
        Ok(MachineEventResponse {})
    }

    async fn wipe_done(
        &self,
        peer: &Peer,
        request: WipeReport,
    ) -> Result<WipeReportResponse, LinkStatus> {
        let id = access::machine(peer)?;
        self.hears_hammer(peer, id)?;
        let wiped = |disk: proto_mesh::DiskWipe| DiskWipe {
            name: disk.name,
            serial: disk.serial,
            method: disk.method,
            error: convert::non_empty(disk.error),
            duration_ms: disk.duration_ms,
        };
        let op = WipeDone {
            id,
            disks: request.disks.into_iter().map(wiped).collect(),
        };
        let about = format!("machine {id} disks {}", op.disks.len());
        self.audited(
            &machine_service::WIPE_DONE,
            peer,
            about,
            |shared| async move {
                shared.propose(peer, op).await?;
                Ok(WipeReportResponse {})
            },
        )
        .await
    }

    async fn project_identity(
        &self,
        peer: &Peer,
        request: ProjectIdentityRequest,
    ) -> Result<ProjectIdentityResponse, LinkStatus> {
        let id = access::machine(peer)?;
        self.hears_hammer(peer, id)?;
        let (method, about) = (&machine_service::PROJECT_IDENTITY, format!("machine {id}"));
        self.audited(method, peer, about, |shared| async move {
            shared.try_project_identity(id, &request.csr).await
        })
        .await
    }

    async fn install_done(
        &self,
        peer: &Peer,
        request: InstallReport,
    ) -> Result<InstallReportResponse, LinkStatus> {
        let id = access::machine(peer)?;
        self.hears_hammer(peer, id)?;
        let about = format!("machine {id} allocation {}", request.allocation_uuid);
        self.audited(
            &machine_service::INSTALL_DONE,
            peer,
            about,
            |shared| async move {
                shared.propose(peer, installed(id, request)?).await?;
                Ok(InstallReportResponse {})
            },
        )
        .await
    }
}

/// The end of an installation, with the last bytes of its log.
fn installed(id: MachineId, report: InstallReport) -> Result<InstallDone, LinkStatus> {
    let cut = report.log_tail.len().saturating_sub(LOG_TAIL_MAX);
    Ok(InstallDone {
        id,
        allocation: report.allocation_uuid.parse().map_err(status::parse)?,
        error: convert::non_empty(report.error),
        step: report.step,
        retryable: report.retryable,
        log_tail: report.log_tail[report.log_tail.ceil_char_boundary(cut)..].to_owned(),
        console_password: report.console_password,
        primary_disk: report.primary_disk,
    })
}

impl GatewayParts {
    /// Only while the machine is being installed: later its disk has an identity already.
    async fn try_project_identity(
        &self,
        id: MachineId,
        csr: &[u8],
    ) -> Result<ProjectIdentityResponse, LinkStatus> {
        let machine = self
            .store
            .read(|t| t.require::<Machine>(&id).cloned())
            .await;
        let machine = machine
            .map_err(|e| status::store(&e))?
            .map_err(|e| status::refused(&e))?;
        if machine.phase != Phase::Installing {
            let message = format!("machine \"{id}\" is {}, not being installed", machine.phase);
            return Err(status::refused(&StateError::new(
                ErrorCode::WrongPhase,
                message,
            )));
        }
        let issued = self
            .pki
            .issue_project_machine(&machine, csr)
            .await
            .map_err(status::pki)?;
        let certificate = crate::enrol::certificate(issued);
        Ok(ProjectIdentityResponse {
            chain: certificate.chain,
            roots: certificate.roots,
            not_after_ms: certificate.not_after_ms,
            identity: certificate.identity,
        })
    }

    /// Notes that hammer said something. After a restore a boot of after the backup speaks with a
    /// certificate that the state does not know: it proves nothing about the machine.
    fn hears_hammer(&self, peer: &Peer, id: MachineId) -> Result<(), LinkStatus> {
        let is_proof = self.look(|tables| {
            let serial = peer.identity().map(|identity| &identity.serial);
            let known = serial.and_then(|serial| tables.get::<Certificate>(serial));
            life::restored(tables).is_none() || known.is_some()
        })?;
        if is_proof {
            self.presence.heard_machine(id, self.store.now());
        }
        Ok(())
    }

    fn order(&self, order: &Order) -> Option<WireOrder> {
        Some(match order {
            Order::Nothing => return None,
            Order::Wipe => WireOrder::Wipe(wire::Wipe::default()),
            Order::WipeMetadata => WireOrder::Wipe(wire::Wipe {
                level: WipeLevel::Metadata.as_str().to_owned(),
            }),
            Order::Wait => WireOrder::Wait(wire::Wait {}),
            Order::Reboot => WireOrder::Reboot(wire::Reboot {}),
            Order::Hold { reason } => WireOrder::Hold(wire::Hold {
                reason: reason.clone(),
            }),
            Order::Install(order) => WireOrder::Install(install::message(order, &self.control())),
        })
    }
}

fn registered(reply: control_state::Reply) -> Result<MachineRegisterResponse, LinkStatus> {
    let machine = reply.machine().map_err(|e| status::refused(&e))?;
    Ok(MachineRegisterResponse {
        size: machine
            .size
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        partition: machine
            .partition
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    })
}

fn inventory(
    id: MachineId,
    request: MachineRegisterRequest,
) -> Result<RegisterMachine, LinkStatus> {
    let firmware = match request.firmware() {
        proto_mesh::Firmware::Unspecified => Firmware::Unknown,
        proto_mesh::Firmware::Bios => Firmware::Bios,
        proto_mesh::Firmware::Uefi => Firmware::Uefi,
    };
    let cpu = |cpu: proto_mesh::Cpu| Cpu {
        vendor: cpu.vendor,
        model: cpu.model,
        cores: cpu.cores,
        threads: cpu.threads,
    };
    let gpu = |gpu: proto_mesh::Gpu| Gpu {
        vendor: gpu.vendor,
        model: gpu.model,
    };
    let disk = |disk: proto_mesh::BlockDevice| BlockDevice {
        name: disk.name,
        size: disk.size,
        serial: disk.serial,
        model: disk.model,
        rotational: disk.rotational,
        removable: disk.removable,
    };
    let fru = request.fru.unwrap_or_default();
    Ok(RegisterMachine {
        id,
        seen_in: None,
        hammer_version: request.hammer_version,
        boot_id: request.boot_id,
        hardware: Hardware {
            memory: request.memory,
            cpus: request.cpus.into_iter().map(cpu).collect(),
            gpus: request.gpus.into_iter().map(gpu).collect(),
            disks: request.disks.into_iter().map(disk).collect(),
            nics: request
                .nics
                .into_iter()
                .map(nic)
                .collect::<Result<_, _>>()?,
            firmware,
        },
        bios: Bios {
            version: request.bios_version,
            vendor: request.bios_vendor,
            date: request.bios_date,
        },
        fru: Fru {
            chassis_part_serial: fru.chassis_serial,
            board_mfg: fru.board_manufacturer,
            board_mfg_serial: fru.board_serial,
            product_manufacturer: fru.product_manufacturer,
            product_part_number: fru.product_name,
            product_serial: fru.product_serial,
            ..Fru::default()
        },
        bmc_address: request.bmc_address,
        bmc_mac: request.bmc_mac,
        bmc_version: request.bmc_version,
    })
}

fn nic(nic: proto_mesh::Nic) -> Result<Nic, LinkStatus> {
    let neighbour = |n: proto_mesh::nic::Neighbour| Neighbour {
        chassis_id: n.chassis_id,
        port_id: n.port_id,
        system_name: n.system_name,
        ..Neighbour::default()
    };
    Ok(Nic {
        name: nic.name,
        mac: nic.mac.parse().map_err(status::parse)?,
        identifier: nic.identifier,
        vendor: nic.vendor,
        model: nic.model,
        speed: nic.speed,
        neighbours: nic.neighbours.into_iter().map(neighbour).collect(),
        boot: nic.boot,
    })
}
