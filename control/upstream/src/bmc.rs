//! BMCs, for the agent of the published stack: orders out, readings and ends of orders in.
//!
//! That agent keeps no passwords: it is told with each order how the BMC lets it in, which hammer
//! or the agent itself reported before. They are sealed in the state, and nobody else is told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control_authz::{Permit, SystemActor};
use control_convert::enums::bmc_command;
use control_convert::machine::bmc_details;
use control_convert::parse;
use control_gate::Caller;
use control_gate::refusal::{invalid, refused};
use control_pki::Pki;
use control_state::life::{bmc_desired, bmc_reading_matters};
use control_state::{
    self as state, BmcAccess, BmcOrder, BmcOrderDone, BmcReading, BmcStream, KeepBmcAccess, Kind,
    Machine, Partition, ReportBmc, StateError, Tables, TakeBmcOrder,
};
use proto_identity::AgentRole;
use proto_public::api::v2;
use proto_public::infra::v2 as infra;
use proto_public::infra::v2::bmc_service_server::BmcService;
use proto_types::{MachineId, OrderId, PartitionId};
use tonic::{Code, Request, Response, Status};

use crate::agent_stream::{self, AgentStream};
use crate::bmc_streams::OpenBmcStream;
use crate::convert::from_bmc_report;
use crate::stream_plan::StreamPlan;
use crate::{RpcResult, Upstream, ok};

/// Readings in one report.
const READINGS_MAX: usize = 10_000;
/// Readings in one command.
const READINGS_PER_COMMAND: usize = 100;

/// How a BMC lets somebody in, as it was reported.
pub(crate) struct Access {
    machine: MachineId,
    address: String,
    user: String,
    password: String,
}

impl Access {
    pub(crate) fn of(machine: MachineId, bmc: &v2::MachineBmc) -> Self {
        Self {
            machine,
            address: bmc.address.clone(),
            user: bmc.user.clone(),
            password: bmc.password.clone(),
        }
    }
}

#[tonic::async_trait]
impl BmcService for Upstream {
    async fn update_bmc_info(
        &self,
        request: Request<infra::UpdateBmcInfoRequest>,
    ) -> RpcResult<infra::UpdateBmcInfoResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let partition: PartitionId = parse("partition", &request.partition)?;
        caller.speaks_for(&partition)?;
        let alone = |tables: &Tables| self.alone_in_partition(tables, &partition, AgentRole::Bmc);
        self.gate.read(&caller, alone).await?;
        self.hears_partition(&partition);
        if request.bmc_reports.len() > READINGS_MAX {
            let rule = format!("must be at most {READINGS_MAX}");
            return Err(invalid("bmc_reports", rule));
        }
        let now = self.gate.now();
        let (mut readings, mut accesses) = (Vec::new(), Vec::new());
        for report in request.bmc_reports {
            let bmc = report.bmc.clone();
            let reading = from_bmc_report(report, now)?;
            accesses.extend(
                reading
                    .machine
                    .zip(bmc)
                    .map(|(id, bmc)| Access::of(id, &bmc)),
            );
            readings.push(reading);
        }
        let created = self.report(&caller, &partition, readings.clone()).await?;
        let reported: Vec<MachineId> = readings
            .iter()
            .filter_map(|reading| reading.machine)
            .collect();
        let updated = self.in_partition(&caller, &partition, &reported).await?;
        for access in accesses {
            if updated.contains(&access.machine) && self.is_believed(&caller, &access).await? {
                self.keep_bmc_access(&caller, access).await?;
            }
        }
        let texts =
            |ids: &mut dyn Iterator<Item = &MachineId>| ids.map(ToString::to_string).collect();
        ok(infra::UpdateBmcInfoResponse {
            updated_machines: texts(&mut updated.iter().filter(|id| !created.contains(id))),
            created_machines: texts(&mut created.iter()),
        })
    }

    async fn wait_for_bmc_command(
        &self,
        request: Request<infra::WaitForBmcCommandRequest>,
    ) -> RpcResult<AgentStream<infra::WaitForBmcCommandResponse>> {
        let caller = Caller::of(&request)?;
        let partition: PartitionId = parse("partition", &request.get_ref().partition)?;
        caller.speaks_for(&partition)?;
        let read = |tables: &Tables| {
            tables.require::<Partition>(&partition)?;
            self.alone_in_partition(tables, &partition, AgentRole::Bmc)
        };
        self.gate.read(&caller, read).await?;
        let place = self.published.place(partition.as_str())?;
        let (stream, wakes) = self.published.bmc_streams.open(&partition);
        let taker = Arc::new(OrderTaker {
            upstream: self.clone(),
            user: caller.user.clone(),
            partition: partition.clone(),
            stream,
            taken: Mutex::default(),
        });
        let looker = Arc::clone(&taker);
        let upstream = self.clone();
        let plan = StreamPlan {
            look: Box::new(move |tables| looker.look(tables)),
            claim: Some(Box::new(move |message| {
                let (taker, command) = (Arc::clone(&taker), message.command_id.clone());
                Box::pin(async move { taker.take(&command).await })
            })),
            wakes: Some(wakes),
            matters: |change| {
                matches!(
                    change.kind,
                    Kind::BmcOrder | Kind::Machine | Kind::ClusterClock
                )
            },
            beat: Box::new(move || {
                upstream.hears_partition(&partition);
                Box::pin(std::future::ready(Ok(())))
            }),
            place,
        };
        Ok(Response::new(
            agent_stream::open(self, &caller, plan).await?,
        ))
    }

    async fn bmc_command_done(
        &self,
        request: Request<infra::BmcCommandDoneRequest>,
    ) -> RpcResult<infra::BmcCommandDoneResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: OrderId = parse("command_id", &request.command_id)?;
        let partition = self
            .gate
            .read(&caller, |tables| {
                let found = tables.get::<BmcOrder>(&id);
                let partition = found
                    .filter(|order| caller.reaches(Some(&order.partition)))
                    .map(|order| order.partition.clone())
                    .ok_or_else(|| StateError::not_found("BMC command", id))?;
                self.alone_in_partition(tables, &partition, AgentRole::Bmc)?;
                Ok(partition)
            })
            .await?;
        self.hears_partition(&partition);
        let op = BmcOrderDone {
            id,
            partition,
            error: request.error.filter(|error| !error.is_empty()),
            power_state: None,
            nonce: None,
        };
        self.gate.propose(&caller, op).await?;
        ok(infra::BmcCommandDoneResponse {})
    }
}

/// Takes orders of a partition for one stream.
struct OrderTaker {
    upstream: Upstream,
    user: String,
    partition: PartitionId,
    stream: OpenBmcStream,
    /// Open orders that were sent on this stream.
    taken: Mutex<BTreeSet<OrderId>>,
}

impl OrderTaker {
    fn taken(&self) -> MutexGuard<'_, BTreeSet<OrderId>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self) -> BmcStream {
        BmcStream {
            node: self.upstream.gate.store.node_id(),
            id: self.stream.id(),
        }
    }

    /// Open orders that this stream may take, oldest first.
    fn look(&self, tables: &Tables) -> Vec<infra::WaitForBmcCommandResponse> {
        let orders = bmc_desired(tables, &self.partition);
        let mut taken = self.taken();
        // Finished orders leave the set, so that it stays as small as the queue.
        taken.retain(|id| orders.iter().any(|order| order.id == *id));
        // An agent reconnects before its old stream is known to be dead. Orders sent on the old one
        // would be lost.
        if !self.stream.is_newest() {
            return Vec::new();
        }
        let (me, open) = (self.id(), self.stream.open());
        // An order taken by a stream of this node that has closed is free again: the agent never
        // finished it. Streams of other nodes may still be open, so their orders stay taken.
        let is_free = |order: &BmcOrder| {
            let holder = order.taken_by.filter(|holder| *holder != me);
            holder.is_none_or(|holder| holder.node == me.node && !open.contains(&holder.id))
        };
        let news = orders.iter().filter(|order| !taken.contains(&order.id));
        let news = news.filter(|order| is_free(order));
        news.filter_map(|order| message(&self.upstream.pki, tables, order))
            .collect()
    }

    /// Has the state note that the order is this stream's; `false` if it is another one's.
    async fn take(&self, command_id: &str) -> Result<bool, Status> {
        let id: OrderId = parse("command_id", command_id)?;
        let op = TakeBmcOrder {
            id,
            partition: self.partition.clone(),
            stream: self.id(),
            open: self.stream.open(),
        };
        // The call that opened the stream is on record already.
        let permit = Permit::system(SystemActor::Gateway);
        match self.upstream.gate.propose_as(&permit, &self.user, op).await {
            Ok(_) => {}
            Err(refused) if matches!(refused.code(), Code::Aborted | Code::NotFound) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.taken().insert(id);
        Ok(true)
    }
}

/// An order with the BMC's credentials. `None` for actions that the contract does not have.
fn message(
    pki: &Pki,
    tables: &Tables,
    order: &BmcOrder,
) -> Option<infra::WaitForBmcCommandResponse> {
    let command = bmc_command(order.action)?;
    let machine = tables.get::<Machine>(&order.machine);
    let report = machine.and_then(|machine| bmc_details(machine).bmc_report);
    let mut bmc = report.and_then(|report| report.bmc).unwrap_or_default();
    if let Some(access) = machine.and_then(|machine| machine.bmc_access.as_ref()) {
        bmc.user.clone_from(&access.user);
        bmc.password = open(pki, order.machine, access).unwrap_or_default();
    }
    Some(infra::WaitForBmcCommandResponse {
        uuid: order.machine.to_string(),
        bmc_command: command.into(),
        machine_bmc: Some(bmc),
        command_id: order.id.to_string(),
    })
}

fn seal_name(machine: MachineId) -> String {
    format!("bmc/{machine}")
}

/// The password. `None` if it cannot be unsealed: the log says so, and the agent's login fails.
fn open(pki: &Pki, machine: MachineId, access: &BmcAccess) -> Option<String> {
    let opened = pki.unseal(&seal_name(machine), &access.sealed_password);
    match opened {
        Ok(password) => String::from_utf8(password).ok(),
        Err(error) => {
            tracing::error!(machine = %machine, error = %error, "a BMC password does not open");
            None
        }
    }
}

impl Upstream {
    /// Writes what says anything new. The machines that were not known before.
    async fn report(
        &self,
        caller: &Caller,
        partition: &PartitionId,
        readings: Vec<BmcReading>,
    ) -> Result<Vec<MachineId>, Status> {
        let now = self.gate.now();
        let news: Vec<BmcReading> = self
            .gate
            .read(caller, |tables| {
                tables.require::<Partition>(partition)?;
                let matters = |reading: &BmcReading| bmc_reading_matters(tables, reading, now);
                Ok(readings.into_iter().filter(matters).collect())
            })
            .await?;
        let mut created = Vec::new();
        for readings in news.chunks(READINGS_PER_COMMAND) {
            let op = ReportBmc {
                partition: partition.clone(),
                readings: readings.to_vec(),
            };
            if let state::Reply::MachineIds(ids) = self.gate.propose(caller, op).await? {
                created.extend(ids);
            }
        }
        Ok(created)
    }

    /// Those machines that are in the partition.
    async fn in_partition(
        &self,
        caller: &Caller,
        partition: &PartitionId,
        ids: &[MachineId],
    ) -> Result<BTreeSet<MachineId>, Status> {
        let is_here = |tables: &Tables, id: &MachineId| {
            let found = tables.get::<Machine>(id);
            found.is_some_and(|machine| machine.partition.as_ref() == Some(partition))
        };
        let here = |tables: &Tables| {
            let here = ids.iter().filter(|id| is_here(tables, id));
            Ok(here.copied().collect())
        };
        self.gate.read(caller, here).await
    }

    /// `true` if the password was reported for the BMC that the state believes to be the machine's.
    /// Another BMC that claims the machine must neither get the right one's password nor replace
    /// it.
    async fn is_believed(&self, caller: &Caller, access: &Access) -> Result<bool, Status> {
        let is_at = |tables: &Tables| {
            let bmc = tables
                .get::<Machine>(&access.machine)
                .and_then(|machine| machine.bmc.as_ref());
            Ok(bmc.is_some_and(|bmc| bmc.is_at(&access.address)))
        };
        self.gate.read(caller, is_at).await
    }

    /// Keeps how a BMC lets somebody in, if that was told and is new.
    pub(crate) async fn keep_bmc_access(
        &self,
        caller: &Caller,
        access: Access,
    ) -> Result<(), Status> {
        if access.password.is_empty() {
            return Ok(());
        }
        let machine = access.machine;
        let is_known = self.gate.read(caller, |tables| {
            let found = tables.require::<Machine>(&machine)?;
            let same = found.bmc_access.as_ref().filter(|kept| {
                let password = open(&self.pki, machine, kept);
                kept.user == access.user && password.as_ref() == Some(&access.password)
            });
            Ok(same.is_some())
        });
        if is_known.await? {
            return Ok(());
        }
        let sealed = self
            .pki
            .seal(&seal_name(machine), access.password.as_bytes());
        let sealed_password = sealed.map_err(|error| {
            tracing::error!(error = %error, "a BMC password could not be sealed");
            refused(state::ErrorCode::Internal, "the password could not be kept")
        })?;
        let op = KeepBmcAccess {
            machine,
            access: BmcAccess {
                user: access.user,
                sealed_password,
            },
        };
        self.gate.propose(caller, op).await.map(drop)
    }
}
