//! Switches for their operators: desired beside observed state, forecasts, traces, drains.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use control_convert::fabric::{
    fabric_differences, fabric_planned, fabric_summary, fabric_switch, fabric_trace,
};
use control_convert::{parse, required, time};
use control_front::listing::{EncodedItems, listing, listing_encoded};
use control_gate::Caller;
use control_gate::refusal::{of_state, of_store, refused};
use control_presence::{HeardSwitch, OpticsReading, SwitchNumbers};
use control_state::{
    self as state, DrainSwitch, ErrorCode, FabricChange, SetSwitchPort, Tables, forecast,
    trace_packet,
};
use proto_identity::{AgentRole, SpiffeId, Subject};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::fabric_service_get_plan_request::Change;
use proto_public::metalmesh::admin::v1::fabric_service_server::FabricService;
use proto_types::{MachineId, SwitchId};
use tonic::{Request, Status};

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl FabricService for Services {
    async fn list(
        &self,
        request: Request<mesh::FabricServiceListRequest>,
    ) -> ApiResult<mesh::FabricServiceListResponse> {
        let caller = Caller::of(&request)?;
        let partition = request.into_inner().partition;
        let found = self.gate.read(&caller, |tables| {
            check_partition(tables, &partition)?;
            let is_wanted = |switch: &&state::Switch| {
                partition.is_empty() || switch.partition.as_str() == partition
            };
            let agents = switch_agents(tables, is_wanted).into_iter();
            let rows = agents.map(|(switch, agent)| (fabric_summary(tables, switch), agent));
            Ok(rows.collect::<Vec<_>>())
        });
        let (mut shown, agents): (Vec<_>, Vec<_>) = found.await?.into_iter().unzip();
        let ids: Vec<SpiffeId> = agents.iter().flatten().cloned().collect();
        // The state is shown also while no leader answers.
        let sessions = self.node.presence.agents(&ids).await.unwrap_or(None);
        let mut sessions = sessions.unwrap_or_default().into_iter();
        let with_agent = shown.iter_mut().zip(&agents);
        for (row, _) in with_agent.filter(|(_, agent)| agent.is_some()) {
            row.connected = sessions.next();
        }
        listing(shown, mesh::FabricSummary::clone)
    }

    async fn get(
        &self,
        request: Request<mesh::FabricServiceGetRequest>,
    ) -> ApiResult<mesh::FabricServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: SwitchId = parse("id", &request.get_ref().id)?;
        let shown = self.fabric_switch(&caller, &id, None).await?;
        ok(mesh::FabricServiceGetResponse {
            switch: Some(shown),
        })
    }

    async fn list_differences(
        &self,
        request: Request<mesh::FabricServiceListDifferencesRequest>,
    ) -> ApiResult<mesh::FabricServiceListDifferencesResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let found = self.gate.read(&caller, |tables| {
            check_partition(tables, &request.partition)?;
            let is_all = request.id.is_empty();
            let mut switches = tables
                .all::<state::Switch>()
                .filter(|switch| is_all || switch.id.as_str() == request.id)
                .filter(|switch| {
                    request.partition.is_empty() || switch.partition.as_str() == request.partition
                })
                .peekable();
            if !is_all && switches.peek().is_none() {
                return Err(state::StateError::not_found("switch", &request.id));
            }
            let shown = switches.flat_map(|switch| fabric_differences(tables, switch));
            Ok(shown.collect::<EncodedItems>())
        });
        listing_encoded(found.await?)
    }

    async fn get_plan(
        &self,
        request: Request<mesh::FabricServiceGetPlanRequest>,
    ) -> ApiResult<mesh::FabricServiceGetPlanResponse> {
        let caller = Caller::of(&request)?;
        let change = required("change", request.into_inner().change)?;
        let change = self.wanted_change(&caller, change).await?;
        // A copy of pointers: the forecast works outside of the state's lock.
        let tables: Tables = self.gate.read(&caller, |tables| Ok(tables.clone())).await?;
        let now = self.gate.now();
        let work = tokio::task::spawn_blocking(move || forecast(tables, &change, now));
        let planned = work.await.map_err(|error| {
            tracing::error!(error = %error, "a forecast ended early");
            refused(ErrorCode::Internal, "the forecast ended early")
        })?;
        let planned = planned.map_err(of_state)?.into_iter();
        ok(mesh::FabricServiceGetPlanResponse {
            planned: planned.map(fabric_planned).collect(),
        })
    }

    async fn get_trace(
        &self,
        request: Request<mesh::FabricServiceGetTraceRequest>,
    ) -> ApiResult<mesh::FabricServiceGetTraceResponse> {
        let caller = Caller::of(&request)?;
        let from: MachineId = parse("machine", &request.get_ref().machine)?;
        let to: IpAddr = parse_address(&request.get_ref().address)?;
        let trace = self
            .gate
            .read(&caller, |tables| trace_packet(tables, from, to));
        ok(mesh::FabricServiceGetTraceResponse {
            trace: Some(fabric_trace(trace.await?)),
        })
    }

    async fn drain(
        &self,
        request: Request<mesh::FabricServiceDrainRequest>,
    ) -> ApiResult<mesh::FabricServiceDrainResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: SwitchId = parse("id", &request.id)?;
        let needs_care = request.drained && !request.force;
        let silent = match needs_care {
            true => self.silent_switches(&caller).await?,
            false => BTreeSet::new(),
        };
        let op = DrainSwitch {
            id: id.clone(),
            drained: request.drained,
            force: request.force,
            silent,
        };
        // Of the reply, and not read again: a dry run leaves the state as it is.
        let changed = self.gate.propose(&caller, op).await?;
        let changed = changed.switch().map_err(of_state)?;
        let shown = self.fabric_switch(&caller, &id, Some(changed)).await?;
        ok(mesh::FabricServiceDrainResponse {
            switch: Some(shown),
        })
    }
}

/// Refuses a partition that does not exist; empty means all. A mistyped one would look like a
/// partition without switches, in which nothing differs.
fn check_partition(tables: &Tables, id: &str) -> Result<(), state::StateError> {
    let mut partitions = tables.all::<state::Partition>();
    if id.is_empty() || partitions.any(|partition| partition.id.as_str() == id) {
        return Ok(());
    }
    Err(state::StateError::not_found("partition", id))
}

fn parse_address(text: &str) -> Result<IpAddr, Status> {
    let address = text.parse::<IpAddr>();
    address.map_err(|_| control_gate::refusal::invalid("address", "must be an IP address"))
}

impl Services {
    /// A switch with what the leader hears of it.
    async fn fabric_switch(
        &self,
        caller: &Caller,
        id: &SwitchId,
        changed: Option<Arc<state::Switch>>,
    ) -> Result<mesh::FabricSwitch, Status> {
        let shown = self.gate.read(caller, |tables| {
            let switch = match &changed {
                Some(switch) => switch,
                None => tables.require::<state::Switch>(id)?,
            };
            Ok((fabric_switch(tables, switch), agent_of(tables, switch)))
        });
        let (mut shown, agent) = shown.await?;
        // The state is shown also while no leader answers.
        let heard = self.node.presence.switch(id, agent.as_ref()).await;
        let heard = heard.unwrap_or_else(|error| {
            tracing::debug!(switch = %id, error = %error, "the leader was not asked");
            HeardSwitch::default()
        });
        shown.connected = heard.connected;
        if let Some(numbers) = &heard.numbers {
            add_numbers(&mut shown, numbers);
        }
        Ok(shown)
    }

    /// The switches whose agents have no session. Agents of the published stack have none.
    ///
    /// # Errors
    /// `failed_precondition` while that is not known, and those of a cluster without a leader.
    async fn silent_switches(&self, caller: &Caller) -> Result<BTreeSet<SwitchId>, Status> {
        let agents = self.gate.read(caller, |tables| {
            let agents = switch_agents(tables, |switch| switch.hears).into_iter();
            let agents = agents.map(|(switch, agent)| (switch.id.clone(), agent));
            Ok(agents.collect::<Vec<_>>())
        });
        let (with_agent, without): (Vec<_>, Vec<_>) = agents
            .await?
            .into_iter()
            .partition(|(_, agent)| agent.is_some());
        let ids: Vec<SpiffeId> = with_agent.iter().filter_map(|(_, id)| id.clone()).collect();
        let sessions = self.node.presence.agents(&ids).await.map_err(of_store)?;
        let Some(sessions) = sessions else {
            let what = "the leader does not say which switches are heard";
            let hint = "upgrade every control node, or repeat it with --force; see: metalmesh \
                        cluster status";
            let error = state::StateError::new(ErrorCode::SwitchNotReady, what);
            return Err(of_state(error.hint(hint)));
        };
        let silent = with_agent.into_iter().zip(sessions);
        let silent = silent.filter(|(_, has_session)| !has_session);
        let silent = silent.map(|(found, _)| found).chain(without);
        Ok(silent.map(|(id, _)| id).collect())
    }

    async fn wanted_change(&self, caller: &Caller, change: Change) -> Result<FabricChange, Status> {
        let drain = |id: SwitchId, drained: bool, silent| DrainSwitch {
            id,
            drained,
            force: false,
            silent,
        };
        Ok(match change {
            Change::Allocate(wanted) => FabricChange::Allocate {
                machine: parse("allocate.machine", &wanted.machine)?,
                network: parse("allocate.network", &wanted.network)?,
                image: Some(wanted.image).filter(|image| !image.is_empty()),
            },
            Change::Release(machine) => FabricChange::Release(parse("release", &machine)?),
            Change::Port(port) => FabricChange::Port(SetSwitchPort {
                id: parse("port.switch", &port.switch)?,
                port: port.port,
                admin_up: port.up,
            }),
            Change::Drain(id) => {
                let silent = self.silent_switches(caller).await?;
                FabricChange::Drain(drain(parse("drain", &id)?, true, silent))
            }
            Change::Undrain(id) => {
                FabricChange::Drain(drain(parse("undrain", &id)?, false, BTreeSet::new()))
            }
        })
    }
}

/// The identity of a switch's agent. `None` means that none has joined.
fn agent_of(tables: &Tables, switch: &state::Switch) -> Option<SpiffeId> {
    core_agents(tables).find(|agent| {
        matches!(agent.subject(), Subject::Agent { partition, id, .. }
            if partition == switch.partition.as_str() && id == switch.id.as_str())
    })
}

/// Switches with the identities of their agents. `None` means that none has joined.
fn switch_agents(
    tables: &Tables,
    is_wanted: impl Fn(&&state::Switch) -> bool,
) -> Vec<(&state::Switch, Option<SpiffeId>)> {
    // Identities may be many, those of machines included: they are looked at once.
    let mut joined: BTreeMap<(String, String), SpiffeId> = BTreeMap::new();
    for agent in core_agents(tables) {
        let Subject::Agent { partition, id, .. } = agent.subject() else {
            continue;
        };
        joined.insert((partition.clone(), id.clone()), agent);
    }
    let switches = tables
        .all::<state::Switch>()
        .map(AsRef::as_ref)
        .filter(is_wanted);
    let agents = switches.map(|switch| {
        let key = (switch.partition.to_string(), switch.id.to_string());
        (switch, joined.remove(&key))
    });
    agents.collect()
}

/// The identities of all switches' agents.
fn core_agents(tables: &Tables) -> impl Iterator<Item = SpiffeId> + '_ {
    let ids = tables.all::<state::Identity>();
    let ids = ids.filter_map(|identity| identity.id.parse::<SpiffeId>().ok());
    ids.filter(|id| {
        let subject = id.subject();
        matches!(subject, Subject::Agent { role, .. } if *role == AgentRole::Core)
    })
}

fn add_numbers(switch: &mut mesh::FabricSwitch, numbers: &SwitchNumbers) {
    switch.counted_at = time(numbers.at);
    for port in &mut switch.ports {
        let Some(found) = numbers.ports.get(&port.name) else {
            continue;
        };
        port.counters = found.counters.map(counters);
        port.optics = found.optics.as_ref().map(optics);
    }
}

fn counters(of: [u64; 8]) -> mesh::FabricCounters {
    let [
        rx_bytes,
        tx_bytes,
        rx_packets,
        tx_packets,
        rx_errors,
        tx_errors,
        rx_drops,
        tx_drops,
    ] = of;
    mesh::FabricCounters {
        rx_bytes,
        tx_bytes,
        rx_packets,
        tx_packets,
        rx_errors,
        tx_errors,
        rx_drops,
        tx_drops,
    }
}

fn optics(of: &OpticsReading) -> mesh::FabricOptics {
    let [vendor, part, serial] = of.module.clone();
    let [rx_power, tx_power, temperature] = of.readings;
    mesh::FabricOptics {
        vendor,
        part,
        serial,
        rx_power,
        tx_power,
        temperature,
    }
}
