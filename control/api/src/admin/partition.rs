//! Partitions, kept by administrators, and what they have to offer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use control_convert::catalog::{
    self, from_boot, from_dns, from_ntp, from_partition, is_unspecified, update_servers,
};
use control_convert::{is, is_opt, labels_update, lock, parse, parse_opt, required};
use control_gate::Caller;
use control_gate::refusal::of_state;
use control_state::{
    self as state, CreatePartition, DeletePartition, EventKind, EventLog, Liveliness, Machine,
    Phase, UpdatePartition,
};
use proto_public::admin::v2 as admin;
use proto_types::{PartitionId, ProjectId};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl admin::partition_service_server::PartitionService for Services {
    async fn create(
        &self,
        request: Request<admin::PartitionServiceCreateRequest>,
    ) -> ApiResult<admin::PartitionServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let partition = from_partition(required("partition", request.into_inner().partition)?)?;
        state::BondMode::of_partition(&partition.meta.labels).map_err(of_state)?;
        let made = self
            .partition_reply(&caller, CreatePartition(partition))
            .await?;
        let partition = Some(catalog::partition(&made));
        ok(admin::PartitionServiceCreateResponse { partition })
    }

    async fn update(
        &self,
        request: Request<admin::PartitionServiceUpdateRequest>,
    ) -> ApiResult<admin::PartitionServiceUpdateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let dns_servers = from_dns(&request.dns_servers)?;
        let mgmt = request.mgmt_service_addresses;
        let op = UpdatePartition {
            id: parse("id", &request.id)?,
            lock: lock(request.update_meta)?,
            description: request.description,
            boot: request.boot_configuration.map(from_boot),
            dns_servers: update_servers(dns_servers, IpAddr::is_unspecified),
            ntp_servers: update_servers(from_ntp(&request.ntp_servers), |server| {
                is_unspecified(server)
            }),
            mgmt_service_addresses: update_servers(mgmt, |address| is_unspecified(address)),
            labels: labels_update(request.labels),
        };
        let labels = op.labels.as_ref().map(state::LabelsUpdate::stated);
        labels
            .map_or_else(
                || Ok(state::BondMode::default()),
                state::BondMode::of_partition,
            )
            .map_err(of_state)?;
        let changed = self.partition_reply(&caller, op).await?;
        let partition = Some(catalog::partition(&changed));
        ok(admin::PartitionServiceUpdateResponse { partition })
    }

    async fn delete(
        &self,
        request: Request<admin::PartitionServiceDeleteRequest>,
    ) -> ApiResult<admin::PartitionServiceDeleteResponse> {
        let caller = Caller::of(&request)?;
        let op = DeletePartition(parse("id", &request.get_ref().id)?);
        let gone = self.partition_reply(&caller, op).await?;
        let partition = Some(catalog::partition(&gone));
        ok(admin::PartitionServiceDeleteResponse { partition })
    }

    async fn capacity(
        &self,
        request: Request<admin::PartitionServiceCapacityRequest>,
    ) -> ApiResult<admin::PartitionServiceCapacityResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project: Option<ProjectId> = parse_opt("project", request.project.as_ref())?;
        let capacity = self
            .gate
            .read(&caller, |tables| Ok(capacities(tables, &request, project)));
        ok(admin::PartitionServiceCapacityResponse {
            partition_capacity: capacity.await?,
        })
    }
}

impl Services {
    async fn partition_reply(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<state::Partition>, Status> {
        self.gate
            .propose(caller, op)
            .await?
            .partition()
            .map_err(of_state)
    }
}

fn capacities(
    tables: &state::Tables,
    request: &admin::PartitionServiceCapacityRequest,
    project: Option<ProjectId>,
) -> Vec<admin::PartitionCapacity> {
    let mut counts: BTreeMap<&PartitionId, BTreeMap<String, admin::MachineSizeCapacity>> = tables
        .all::<state::Partition>()
        .filter(|partition| is(request.id.as_ref(), partition.id.as_str()))
        .map(|partition| (&partition.id, BTreeMap::new()))
        .collect();
    for machine in tables.all::<Machine>() {
        let Some(sizes) = machine.partition.as_ref().and_then(|id| counts.get_mut(id)) else {
            continue;
        };
        if !is_opt(request.size.as_ref(), machine.size.as_ref()) {
            continue;
        }
        let size = machine
            .size
            .as_ref()
            .map_or_else(|| "unknown".into(), ToString::to_string);
        let capacity = sizes
            .entry(size.clone())
            .or_insert_with(|| admin::MachineSizeCapacity {
                size,
                ..Default::default()
            });
        count(
            capacity,
            machine,
            tables.get::<EventLog>(&machine.id).map(AsRef::as_ref),
        );
    }
    for (partition, sizes) in &mut counts {
        for (size, capacity) in sizes {
            reserve(tables, partition, size, project, capacity);
        }
    }
    let made = |(partition, sizes): (&PartitionId, BTreeMap<_, _>)| admin::PartitionCapacity {
        partition: partition.to_string(),
        machine_size_capacities: sizes.into_values().collect(),
    };
    counts.into_iter().map(made).collect()
}

/// Counts a machine.
fn count(capacity: &mut admin::MachineSizeCapacity, machine: &Machine, log: Option<&EventLog>) {
    let allocated = machine.allocation.is_some();
    let available = machine.condition.state == state::Availability::Available
        && !matches!(machine.phase, Phase::Held(_));
    let waiting = machine.phase == Phase::Waiting;
    let phoned_home = log.and_then(|log| log.state) == Some(EventKind::PhonedHome);
    let faulty = log.is_some_and(|log| {
        log.liveliness == Liveliness::Dead || log.crash_loop || log.failed_reclaim
    }) || matches!(machine.phase, Phase::Held(_));
    capacity.total += 1;
    capacity.allocated += i64::from(allocated);
    capacity.phoned_home += i64::from(phoned_home);
    capacity.waiting += i64::from(waiting);
    capacity.unavailable += i64::from(!available);
    // A machine that a project owns, leases or holds is free for nobody else, and one of a pool for
    // claims alone.
    if waiting && available && !allocated && !faulty && machine.is_shared() {
        capacity.allocatable += 1;
        capacity.free += 1;
    }
    if faulty {
        capacity.faulty += 1;
        capacity.faulty_machines.push(machine.id.to_string());
    }
    if !waiting && !phoned_home && !allocated {
        capacity.other += 1;
        capacity.other_machines.push(machine.id.to_string());
    }
}

/// Subtracts unused reservations of other projects from the free machines.
fn reserve(
    tables: &state::Tables,
    partition: &PartitionId,
    size: &str,
    project: Option<ProjectId>,
    capacity: &mut admin::MachineSizeCapacity,
) {
    let reservations = tables
        .all::<state::SizeReservation>()
        .filter(|reservation| {
            reservation.size.as_str() == size && reservation.partitions.contains(partition)
        });
    let mut seen = BTreeSet::new();
    for reservation in reservations {
        let used = tables
            .all::<Machine>()
            .filter(|machine| {
                machine.uses_reservation()
                    && machine.partition.as_ref() == Some(partition)
                    && machine.size.as_ref() == Some(&reservation.size)
                    && machine
                        .allocation
                        .as_ref()
                        .map(|allocation| allocation.project)
                        == Some(reservation.project)
            })
            .count();
        let amount = i64::from(reservation.amount);
        let used = i64::try_from(used).unwrap_or(i64::MAX).min(amount);
        capacity.reservations += amount;
        capacity.used_reservations += used;
        capacity.remaining_reservations += amount - used;
        if project != Some(reservation.project) && seen.insert(reservation.id) {
            capacity.free = (capacity.free - (amount - used)).max(0);
        }
    }
}
