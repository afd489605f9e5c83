//! The leaves of one partition, in memory.

use agents_nos::stub::Stub;
use agents_nos::{PortObserved, PortPlace, SwitchOs as _, SwitchState};
use proto_wire_lldp::Frame;

use crate::plan::{Cable, MachinePlan, RACK};

/// The segment that machines boot in; control's own choice when nobody says another.
const PROVISIONING_VNI: u32 = 4000;
/// How long what a machine says by LLDP holds, seconds: longer than any run.
const TTL_S: u16 = u16::MAX;

/// All leaves of a partition.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) leaves: Vec<Stub>,
}

impl Fabric {
    /// Leaves whose ports are up and belong to nobody.
    pub(crate) fn new(leaves: usize) -> Self {
        let leaf = |leaf: usize| {
            let [_, _, c, d] = u32::try_from(leaf).unwrap_or_default().to_be_bytes();
            let port = |port: usize| {
                let last = u8::try_from(port).unwrap_or_default();
                let seen = PortObserved {
                    mac: [2, 0xfd, 0, c, d, last],
                    admin_up: true,
                    oper_up: true,
                    place: PortPlace::Isolated,
                };
                (format!("swp{port}"), seen)
            };
            Stub::new(SwitchState {
                ports: (1..=RACK).map(port).collect(),
                ..SwitchState::default()
            })
        };
        Self {
            leaves: (0..leaves).map(leaf).collect(),
        }
    }

    /// Whether a machine's first cable reaches the boot server.
    pub(crate) fn is_provisioning(&self, machine: &MachinePlan) -> bool {
        let [cable, _] = &machine.cables;
        let place = self
            .leaves
            .get(cable.leaf)
            .and_then(|leaf| leaf.place(&cable.port));
        matches!(place, Some(PortPlace::Segment(vni)) if vni.get() == PROVISIONING_VNI)
    }

    /// Takes the carrier of a machine's cable away, or gives it back.
    pub(crate) fn set_carrier(&self, cable: &Cable, up: bool) {
        if let Some(leaf) = self.leaves.get(cable.leaf) {
            leaf.drift(|state| {
                if let Some(port) = state.ports.get_mut(&cable.port) {
                    port.oper_up = up;
                }
            });
        }
    }

    /// The machine says by LLDP where it is.
    pub(crate) fn hear(&self, machine: &MachinePlan) {
        for cable in &machine.cables {
            let frame = Frame {
                source: cable.mac.0,
                chassis_id: machine.uuid.to_string(),
                port_id: cable.mac.to_string(),
                system_name: machine.uuid.to_string(),
                system_description: "hammer".into(),
                ttl_s: TTL_S,
            };
            let neighbours = self.leaves.get(cable.leaf).and_then(Stub::neighbours);
            if let Some(neighbours) = neighbours {
                neighbours.heard(&cable.port, frame, tokio::time::Instant::now());
            }
        }
    }
}
