//! Switches: what their core agents are told and tell.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use control_state::life::{self, SwitchDesired as Intent};
use control_state::{
    ErrorCode, Neighbour, ObservedPlace, Partition, PortObserved, RegisterSwitch, ReportSwitch,
    SWITCH_HEALTH, StateError, Switch, Tables, clip_switch_report, feature_level,
};
use proto_link::{LinkStatus, Peer, Sink};
use proto_mesh::{
    Gateway, PortIntent, PortPlace, PortState, Segment, SwitchDesired, SwitchDesiredRequest,
    SwitchRegisterRequest, SwitchRegisterResponse, SwitchReport, SwitchReportResponse,
    SwitchService, Vrf, switch_service,
};
use proto_types::{MacAddr, PartitionId, SwitchId, VNI_MAX, Vni};

use crate::desired::{self, Desire, Fence};
use crate::desired_size;
use crate::parts::GatewayParts;
use crate::switch_health::{health, numbers};
use crate::wakes::{Concern, Wakes};
use crate::{access, convert, port_filter, status};

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
        mut request: SwitchReport,
    ) -> Result<SwitchReportResponse, LinkStatus> {
        let (partition, id) = access::switch(peer)?;
        self.presence.heard_partition(&partition, self.store.now());
        self.look(|tables| check_partition(tables, &id, &partition))??;
        let places = self.look(|tables| KnownPlaces::of(tables, &self.wakes, &id))?;
        self.look(|tables| leave_out_unregistered(tables, &id, &mut request))?;
        let numbers = numbers(self.store.now(), &request.ports);
        self.presence.keep_numbers(&id, numbers);
        let mut op = report(id, request, &places)?;
        self.look(|tables| leave_out_unknown(tables, &mut op))?;
        clip_switch_report(&mut op);
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

/// The places of a switch's ports, as control knows them.
#[derive(Debug, Default)]
struct KnownPlaces {
    provisioning: Vni,
    /// VNI of each port that belongs in the underlay.
    underlay: BTreeMap<String, Vni>,
    /// L3 VNI of each port that belongs in the segment of its VRF.
    bridged: BTreeMap<String, Vni>,
}

impl KnownPlaces {
    fn of(tables: &Tables, wakes: &Wakes, id: &SwitchId) -> Self {
        let switch = tables.get::<Switch>(id);
        let partition = switch.and_then(|switch| tables.get::<Partition>(&switch.partition));
        let desired = wakes.switch(id).map(|(desired, _)| desired);
        let ports = desired.map(|desired| desired.ports).unwrap_or_default();
        let mut places = Self {
            provisioning: partition.map(|p| p.provisioning_vni()).unwrap_or_default(),
            ..Self::default()
        };
        for port in ports {
            match port.place {
                life::PortPlace::Underlay => places.underlay.insert(port.name, port.vni),
                life::PortPlace::Bridged => places.bridged.insert(port.name, port.vni),
                life::PortPlace::Segment | life::PortPlace::Routed => None,
            };
        }
        places
    }

    /// The VNI that a reported port is kept with. The reclaim compares it with the segment that the
    /// port belongs in: a port that is in no segment must not read as isolated, and one in a VRF not
    /// as in the provisioning segment. A port in the segment of its VRF's bridged machines is kept
    /// with the VRF, and one in the VRF that belongs in the segment is not.
    fn vni(&self, port: &PortState) -> Result<Vni, LinkStatus> {
        let elsewhere = || Vni::try_from(VNI_MAX).map_err(status::parse);
        let vni = Vni::try_from(port.vni).map_err(status::parse)?;
        let bridged = self.bridged.get(&port.name).copied();
        let segment = bridged.and_then(life::bridged_segment);
        match port.place() {
            PortPlace::Unspecified if segment == Some(vni) => Ok(bridged.unwrap_or_default()),
            PortPlace::Unspecified | PortPlace::Routed if bridged == Some(vni) => elsewhere(),
            PortPlace::Unspecified => Ok(vni),
            PortPlace::Routed if vni == Vni::NONE || vni == self.provisioning => elsewhere(),
            PortPlace::Routed => Ok(vni),
            PortPlace::Underlay => match self.underlay.get(&port.name) {
                Some(vni) => Ok(*vni),
                None => elsewhere(),
            },
            PortPlace::Other => elsewhere(),
        }
    }
}

fn report(
    id: SwitchId,
    mut request: SwitchReport,
    places: &KnownPlaces,
) -> Result<ReportSwitch, LinkStatus> {
    let health = health(&mut request);
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
            vni: places.vni(&port)?,
            place: observed_place(port.place()),
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
        health: Some(health),
    })
}

/// Leaves out what an older control node would drop: its state would differ from the others'.
fn leave_out_unknown(tables: &Tables, op: &mut ReportSwitch) {
    if feature_level(tables) >= SWITCH_HEALTH {
        return;
    }
    op.health = None;
    for port in op.ports.values_mut() {
        port.place = ObservedPlace::default();
    }
}

/// Leaves out ports that the switch has not registered. `apply` skips them, but the entry of the
/// log would carry them, and this node would keep their counters.
fn leave_out_unregistered(tables: &Tables, id: &SwitchId, report: &mut SwitchReport) {
    let switch = tables.get::<Switch>(id);
    let is_registered =
        |name: &String| switch.is_some_and(|switch| switch.ports.contains_key(name));
    report.ports.retain(|port| is_registered(&port.name));
}

fn observed_place(place: PortPlace) -> ObservedPlace {
    match place {
        PortPlace::Unspecified => ObservedPlace::Segment,
        PortPlace::Routed => ObservedPlace::Routed,
        PortPlace::Underlay => ObservedPlace::Underlay,
        PortPlace::Other => ObservedPlace::Other,
    }
}

fn message(fence: Fence, intent: &Intent, traces: &BTreeMap<String, String>) -> SwitchDesired {
    let port = |port: &life::PortIntent| PortIntent {
        name: port.name.clone(),
        vni: vni(port).into(),
        admin_up: port.admin_up,
        traceparent: traces.get(&port.name).cloned().unwrap_or_default(),
        place: place(port.place).into(),
        filter: port.filter.as_ref().map(port_filter::message),
    };
    let segment = |segment: &life::SegmentIntent| Segment {
        vni: segment.vni.into(),
        provisioning: segment.provisioning,
        remote_vteps: segment
            .remote_vteps
            .iter()
            .map(ToString::to_string)
            .collect(),
        mtu: segment.mtu,
        gateway: segment.gateway.as_ref().map(gateway),
    };
    let vrf = |vrf: &life::VrfIntent| Vrf {
        vni: vrf.vni.into(),
        name: vrf.name(),
        table: vrf.table(),
    };
    let mut message = SwitchDesired {
        term: fence.term,
        generation: fence.generation,
        ports: intent.ports.iter().map(port).collect(),
        segments: intent.segments.iter().map(segment).collect(),
        vrfs: intent.vrfs.iter().map(vrf).collect(),
        drained: intent.is_drained,
        seal: None,
    };
    desired_size::fit(&mut message);
    message
}

/// The VNI of the place of a port.
fn vni(port: &life::PortIntent) -> Vni {
    match port.place {
        life::PortPlace::Bridged => life::bridged_segment(port.vni).unwrap_or_default(),
        _ => port.vni,
    }
}

fn gateway(gateway: &life::GatewayIntent) -> Gateway {
    Gateway {
        vrf: gateway.vrf.into(),
        addresses: gateway.addresses.iter().map(ToString::to_string).collect(),
    }
}

fn place(place: life::PortPlace) -> PortPlace {
    match place {
        life::PortPlace::Segment | life::PortPlace::Bridged => PortPlace::Unspecified,
        life::PortPlace::Routed => PortPlace::Routed,
        life::PortPlace::Underlay => PortPlace::Underlay,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port in the place that it belongs in is kept with its VRF, and elsewhere with another
    /// number.
    #[test]
    fn a_port_is_kept_with_its_vrf_only_in_its_place() {
        let vni = |number: u32| Vni::try_from(number).unwrap();
        let segment = life::bridged_segment(vni(27)).unwrap();
        let places = KnownPlaces {
            provisioning: vni(4000),
            underlay: [("swp2".to_owned(), vni(28))].into(),
            bridged: [("swp1".to_owned(), vni(27))].into(),
        };
        let elsewhere = VNI_MAX;
        for (name, place, reported, kept) in [
            ("swp1", PortPlace::Unspecified, segment.get(), 27),
            ("swp1", PortPlace::Unspecified, 27, elsewhere),
            ("swp1", PortPlace::Routed, 27, elsewhere),
            ("swp1", PortPlace::Unspecified, 4000, 4000),
            ("swp1", PortPlace::Unspecified, 0, 0),
            ("swp2", PortPlace::Underlay, 0, 28),
            ("swp3", PortPlace::Underlay, 0, elsewhere),
            ("swp3", PortPlace::Routed, 27, 27),
            ("swp3", PortPlace::Unspecified, segment.get(), segment.get()),
            ("swp3", PortPlace::Routed, 4000, elsewhere),
            ("swp3", PortPlace::Other, 27, elsewhere),
        ] {
            let port = PortState {
                name: name.to_owned(),
                vni: reported,
                place: place.into(),
                ..PortState::default()
            };
            let found = places.vni(&port).unwrap().get();
            assert_eq!(found, kept, "{name} in {place:?} {reported}");
        }
    }
}
