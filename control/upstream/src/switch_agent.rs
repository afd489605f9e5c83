//! Switches, for their agent of the published stack: what the ports shall be, and what they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use control_convert::switch::switch;
use control_convert::{duration, parse, required, time};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state};
use control_state::life::{port_vni, restored, switch_report_matters};
use control_state::{
    self as state, ErrorCode, Lock, ObservedPlace, PortObserved, RegisterSwitch, ReportSwitch,
    StateError, Switch, SwitchPort, Tables, UpdateSwitch, clip_switch_report,
};
use proto_public::api::v2;
use proto_public::infra::v2 as infra;
use proto_public::infra::v2::switch_service_server::SwitchService;
use proto_types::SwitchId;
use tonic::{Request, Status};

use crate::convert::{from_bgp_state, switch_order};
use crate::switch_order::SwitchOrder;
use crate::{RpcResult, Upstream, ok};

#[tonic::async_trait]
impl SwitchService for Upstream {
    async fn get(
        &self,
        request: Request<infra::SwitchServiceGetRequest>,
    ) -> RpcResult<infra::SwitchServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let id: SwitchId = parse("id", &request.get_ref().id)?;
        let term = self.gate.store.term();
        let (shown, told, partition) = self
            .gate
            .read(&caller, |tables| {
                let found = self.reached(tables, &caller, &id)?;
                if restored(tables).is_some() {
                    let what = "no switch is told anything before the restored state is reconciled";
                    return Err(StateError::new(ErrorCode::NotReconciled, what));
                }
                let told = told(tables, found, term);
                Ok((switch_order(tables, found), told, found.partition.clone()))
            })
            .await?;
        self.hears_partition(&partition);
        self.published.tell(&id, told);
        ok(infra::SwitchServiceGetResponse {
            switch: Some(shown),
        })
    }

    async fn register(
        &self,
        request: Request<infra::SwitchServiceRegisterRequest>,
    ) -> RpcResult<infra::SwitchServiceRegisterResponse> {
        let caller = Caller::of(&request)?;
        let wanted = required("switch", request.into_inner().switch)?;
        let (user, console) = (
            wanted.management_user.clone(),
            wanted.console_command.clone(),
        );
        // An agent that tells none leaves an administrator's.
        let description = Some(wanted.description.clone()).filter(|text| !text.is_empty());
        let op = registration(wanted)?;
        caller.speaks_for(&op.partition)?;
        let is_ours = |tables: &Tables| self.alone_at_switch(tables, &op.id, &op.partition);
        self.gate.read(&caller, is_ours).await?;
        self.hears_partition(&op.partition);
        let mut registered = self.agent_switch(&caller, op).await?;
        let differs = |new: &Option<String>, old: &Option<String>| new.is_some() && new != old;
        let has_news = differs(&user, &registered.management_user)
            || differs(&console, &registered.console_command)
            || differs(&description, &Some(registered.description.clone()));
        if has_news {
            let op = UpdateSwitch {
                id: registered.id.clone(),
                lock: Lock::Server,
                description,
                replace_mode: None,
                management_ip: None,
                management_user: user,
                console_command: console,
                labels: None,
            };
            registered = self.agent_switch(&caller, op).await?;
        }
        let shown = self
            .gate
            .read(&caller, |tables| Ok(switch_order(tables, &registered)));
        ok(infra::SwitchServiceRegisterResponse {
            switch: Some(shown.await?),
        })
    }

    async fn heartbeat(
        &self,
        request: Request<infra::SwitchServiceHeartbeatRequest>,
    ) -> RpcResult<infra::SwitchServiceHeartbeatResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id: SwitchId = parse("id", &request.id)?;
        let told = self.published.told(&id);
        let (op, matters, partition) = self
            .gate
            .read(&caller, |tables| {
                let found = self.reached(tables, &caller, &id)?;
                let mut op = report(found, told.as_ref(), request);
                clip_switch_report(&mut op);
                let matters = switch_report_matters(tables, &op);
                Ok((op, matters, found.partition.clone()))
            })
            .await?;
        self.hears_partition(&partition);
        let (now, took) = (self.gate.now(), op.duration_ms);
        if matters {
            self.gate.propose(&caller, op).await?;
        }
        let read = |tables: &Tables| Ok(switch(tables, tables.require::<Switch>(&id)?));
        let shown = self.gate.read(&caller, read).await?;
        ok(infra::SwitchServiceHeartbeatResponse {
            id: id.to_string(),
            last_sync: Some(v2::SwitchSync {
                time: time(now),
                duration: Some(duration(took)),
                error: None,
            }),
            last_sync_error: shown.last_sync_error,
        })
    }
}

fn told(tables: &Tables, switch: &Switch, term: u64) -> SwitchOrder {
    let ports = switch.ports.iter();
    let ports = ports.map(|(name, port)| {
        let wanted = (port_vni(tables, switch, name), port.admin_up);
        (name.clone(), wanted)
    });
    SwitchOrder {
        term,
        generation: tables.revision(),
        ports: ports.collect(),
    }
}

#[expect(
    deprecated,
    reason = "published agents write the address into this field"
)]
fn registration(switch: v2::Switch) -> Result<RegisterSwitch, Status> {
    let os = switch.os.unwrap_or_default();
    let vendor = match os.vendor() {
        v2::SwitchOsVendor::Sonic => "sonic",
        v2::SwitchOsVendor::Cumulus => "cumulus",
        v2::SwitchOsVendor::Unspecified => "",
    };
    let (mut ports, mut identifiers) = (BTreeMap::new(), BTreeMap::new());
    for nic in switch.nics {
        let mac = nic.mac.filter(|mac| !mac.is_empty());
        let mac = mac.map(|mac| parse("switch.nics.mac", &mac)).transpose()?;
        if !nic.identifier.is_empty() && nic.identifier != nic.name {
            identifiers.insert(nic.name.clone(), nic.identifier);
        }
        if ports.insert(nic.name.clone(), mac).is_some() {
            let rule = format!("must not name port {:?} twice", nic.name);
            return Err(invalid("switch.nics", rule));
        }
    }
    let address = Some(switch.management_ip).filter(|address| !address.is_empty());
    Ok(RegisterSwitch {
        id: parse("switch.id", &switch.id)?,
        partition: parse("switch.partition", &switch.partition)?,
        rack: switch.rack.unwrap_or_default(),
        room: switch.room.unwrap_or_default(),
        management_ip: address
            .map(|address| parse("switch.management_ip", &address))
            .transpose()?,
        vtep_ip: None,
        ports,
        identifiers,
        os_vendor: vendor.to_owned(),
        os_version: os.version,
        agent_version: os.metal_core_version,
        hears: false,
    })
}

/// The contract has no word for the segment that a port is in. A synchronisation without an error
/// did what the switch was told last.
fn report(
    switch: &Switch,
    told: Option<&SwitchOrder>,
    request: infra::SwitchServiceHeartbeatRequest,
) -> ReportSwitch {
    let error = request.error.filter(|error| !error.is_empty());
    let done = told.filter(|_| error.is_none());
    let (states, mut sessions) = (request.port_states, request.bgp_port_states);
    let ports = switch.ports.iter().filter_map(|(name, port)| {
        let session = sessions.remove(name);
        Some((name.clone(), observed(name, port, done, &states, session)?))
    });
    let ports = ports.collect();
    let sync = &switch.sync;
    let at = done.map_or((sync.applied_term, sync.applied_generation), |order| {
        (order.term, order.generation)
    });
    let took = request.duration.unwrap_or_default();
    let seconds = u64::try_from(took.seconds).unwrap_or(0);
    let ms = u64::try_from(took.nanos / 1_000_000).unwrap_or(0);
    ReportSwitch {
        id: switch.id.clone(),
        applied_term: at.0,
        applied_generation: at.1,
        duration_ms: seconds.saturating_mul(1000).saturating_add(ms),
        error,
        ports,
        health: None,
    }
}

/// The observed state of a port; `None` if nothing was reported of it.
fn observed(
    name: &str,
    port: &SwitchPort,
    done: Option<&SwitchOrder>,
    states: &HashMap<String, i32>,
    session: Option<v2::SwitchBgpPortState>,
) -> Option<PortObserved> {
    let wanted = done.and_then(|order| order.ports.get(name)).copied();
    let status = states.get(name).copied().unwrap_or_default();
    let is_up = match v2::SwitchPortStatus::try_from(status) {
        Ok(v2::SwitchPortStatus::Up) => Some(true),
        Ok(v2::SwitchPortStatus::Down) => Some(false),
        // A status that this version does not know is no observation.
        Ok(v2::SwitchPortStatus::Unspecified | v2::SwitchPortStatus::Unknown) | Err(_) => None,
    };
    let says_nothing = wanted.is_none() && is_up.is_none() && session.is_none();
    // Without a segment it would look as if the switch had isolated the port.
    let has_segment = wanted.is_some() || port.observed.is_some();
    if says_nothing || !has_segment {
        return None;
    }
    let before = port.observed.clone().unwrap_or_default();
    Some(PortObserved {
        admin_up: wanted.map_or(before.admin_up, |(_, up)| up),
        oper_up: is_up.unwrap_or(before.oper_up),
        place: ObservedPlace::default(),
        vni: wanted.map_or(before.vni, |(vni, _)| vni),
        neighbours: before.neighbours,
        bgp: session.map(from_bgp_state),
    })
}

impl Upstream {
    /// A switch that is there for the caller's token, and for which no other agent speaks.
    fn reached<'a>(
        &self,
        tables: &'a Tables,
        caller: &Caller,
        id: &SwitchId,
    ) -> Result<&'a Arc<Switch>, StateError> {
        let found = tables.get::<Switch>(id);
        let found = found.filter(|switch| caller.reaches(Some(&switch.partition)));
        let found = found.ok_or_else(|| {
            let message = format!("switch \"{id}\" did not register yet");
            StateError::new(ErrorCode::SwitchUnknown, message).object("switch", id)
        })?;
        self.alone_at_switch(tables, id, &found.partition)?;
        Ok(found)
    }

    async fn agent_switch(
        &self,
        caller: &Caller,
        op: impl Into<state::Op>,
    ) -> Result<Arc<Switch>, Status> {
        let reply = self.gate.propose(caller, op).await?;
        reply.switch().map_err(of_state)
    }
}
