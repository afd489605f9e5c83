//! Switches: what their core agents are told and tell.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use control_state::life::{self, SwitchDesired as Intent};
use control_state::{
    ErrorCode, FabricMode, Neighbour, PortObserved, RegisterSwitch, ReportSwitch, StateError,
    Switch, Tables,
};
use proto_link::{LinkStatus, Peer, Sink};
use proto_mesh::{
    PortIntent, Segment, SwitchDesired, SwitchDesiredRequest, SwitchRegisterRequest,
    SwitchRegisterResponse, SwitchReport, SwitchReportResponse, SwitchService, switch_service,
};
use proto_types::{MacAddr, PartitionId, SwitchId, Vni};

use crate::desired::{self, Desire, Fence};
use crate::parts::GatewayParts;
use crate::wakes::Concern;
use crate::{access, convert, evpn, status};

impl SwitchService for GatewayParts {
    async fn register(
        &self,
        peer: &Peer,
        request: SwitchRegisterRequest,
    ) -> Result<SwitchRegisterResponse, LinkStatus> {
        let (partition, id) = access::switch(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        let about = format!("switch {id}");
        self.audited(
            &switch_service::REGISTER,
            peer,
            about,
            |shared| async move {
                let op = register(partition, id, request)?;
                shared.propose(peer, op).await?;
                Ok(SwitchRegisterResponse {})
            },
        )
        .await
    }

    async fn desired(
        &self,
        peer: &Peer,
        _request: SwitchDesiredRequest,
        out: Sink<'_, SwitchDesired>,
    ) -> Result<(), LinkStatus> {
        let (partition, id) = access::switch(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        let desire = Desire {
            look: || {
                self.look(|tables| check_partition(tables, &id, &partition))??;
                let found = self.wakes.switch(&id);
                let (intent, revision) = found.map_err(|e| status::refused(&e))?;
                // A restored state would move ports that it does not know the machines of: the
                // switch goes on by what it keeps.
                let is_held = self.look(|tables| life::restored(tables).is_some())?;
                Ok(((!is_held).then_some(intent), revision))
            },
            message: |fence: Fence, intent: &Intent| {
                let traces = self.look(|t| life::port_traces(t, &id)).unwrap_or_default();
                self.sealed(peer, message(fence, intent, &traces))
            },
            concern: Concern::Switch(id.clone()),
            beside: None,
            pause: Duration::ZERO,
        };
        desired::stream(self, desire, out).await
    }

    async fn report(
        &self,
        peer: &Peer,
        request: SwitchReport,
    ) -> Result<SwitchReportResponse, LinkStatus> {
        let (partition, id) = access::switch(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        self.look(|tables| check_partition(tables, &id, &partition))??;
        let op = report(id, request)?;
        if self.look(|t| life::switch_report_matters(t, &op))? {
            self.propose(peer, op).await?;
        }
        Ok(SwitchReportResponse {})
    }
}

/// A switch of the same name in another partition is not there for this one's agents.
fn check_partition(
    tables: &Tables,
    id: &SwitchId,
    partition: &PartitionId,
) -> Result<(), LinkStatus> {
    let found = tables.get::<Switch>(id);
    if found.is_some_and(|switch| switch.partition == *partition) {
        return Ok(());
    }
    let text = format!("switch \"{id}\" did not register yet");
    let error = StateError::new(ErrorCode::SwitchUnknown, text).object("switch", id);
    Err(status::refused(&error))
}

fn register(
    partition: PartitionId,
    id: SwitchId,
    request: SwitchRegisterRequest,
) -> Result<RegisterSwitch, LinkStatus> {
    let mut ports = BTreeMap::new();
    for port in request.ports {
        let mac = convert::optional::<MacAddr>(&port.mac).map_err(status::parse)?;
        ports.insert(port.name, mac);
    }
    Ok(RegisterSwitch {
        id,
        partition,
        rack: request.rack,
        room: request.room,
        management_ip: address(&request.management_ip, "management_ip")?,
        vtep_ip: address(&request.vtep_ip, "vtep_ip")?,
        ports,
        identifiers: BTreeMap::new(),
        os_vendor: request.os_vendor,
        os_version: request.os_version,
        agent_version: request.agent_version,
        hears: true,
    })
}

fn address(text: &str, field: &str) -> Result<Option<IpAddr>, LinkStatus> {
    convert::optional(text)
        .map_err(|_| LinkStatus::invalid_argument(format!("{field} must be an IP address")))
}

fn report(id: SwitchId, request: SwitchReport) -> Result<ReportSwitch, LinkStatus> {
    let mut ports = BTreeMap::new();
    for port in request.ports {
        let neighbour = |n: proto_mesh::LldpNeighbour| Neighbour {
            chassis_id: n.chassis_id,
            port_id: n.port_id,
            system_name: n.system_name,
            system_description: n.system_description,
            mac: n.mac.parse().ok(),
            ..Neighbour::default()
        };
        let observed = PortObserved {
            admin_up: port.admin_up,
            oper_up: port.oper_up,
            vni: Vni::try_from(port.vni).map_err(status::parse)?,
            neighbours: port.neighbours.into_iter().map(neighbour).collect(),
            bgp: None,
        };
        ports.insert(port.name, observed);
    }
    Ok(ReportSwitch {
        id,
        applied_term: request.applied_term,
        applied_generation: request.applied_generation,
        duration_ms: request.sync_duration_ms,
        error: convert::non_empty(request.error),
        ports,
    })
}

fn message(fence: Fence, intent: &Intent, traces: &BTreeMap<String, String>) -> SwitchDesired {
    let is_evpn = intent.mode == FabricMode::Evpn;
    SwitchDesired {
        fabric: evpn::fabric(intent.mode).into(),
        bgp: is_evpn.then(|| evpn::bgp(intent)),
        vrfs: intent.vrfs.iter().copied().map(evpn::vrf).collect(),
        term: fence.term,
        generation: fence.generation,
        ports: intent
            .ports
            .iter()
            .map(|port| PortIntent {
                name: port.name.clone(),
                vni: port.vni.into(),
                admin_up: port.admin_up,
                traceparent: traces.get(&port.name).cloned().unwrap_or_default(),
                place: evpn::place(port.place).into(),
                neighbour: port.session.as_ref().map(evpn::neighbour),
            })
            .collect(),
        segments: intent
            .segments
            .iter()
            .map(|segment| Segment {
                vni: segment.vni.into(),
                provisioning: segment.provisioning,
                remote_vteps: segment
                    .remote_vteps
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
                mtu: segment.mtu,
                gateway: None,
            })
            .collect(),
        seal: None,
    }
}
