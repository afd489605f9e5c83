//! The leaves of one partition, in memory.

use agents_nos::Nos as _;
use agents_nos::model::ModelError;
use agents_nos::stub::Stub;
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
    pub(crate) fn new(leaves: usize) -> Result<Self, ModelError> {
        let leaf = |leaf: usize| {
            let [_, _, c, d] = u32::try_from(leaf).unwrap_or_default().to_be_bytes();
            let port = |port: usize| {
                let last = u8::try_from(port).unwrap_or_default();
                (format!("swp{port}"), [2, 0xfd, 0, c, d, last])
            };
            let ports: Vec<_> = (1..=RACK).map(port).collect();
            Stub::with_links(ports.iter().map(|(name, mac)| (name.as_str(), *mac)))
        };
        let leaves = (0..leaves).map(leaf).collect::<Result<_, _>>()?;
        Ok(Self { leaves })
    }

    /// Whether a machine's first cable reaches the boot server.
    pub(crate) fn is_provisioning(&self, machine: &MachinePlan) -> bool {
        let [cable, _] = &machine.cables;
        let place = self
            .leaves
            .get(cable.leaf)
            .and_then(|leaf| leaf.place(&cable.port));
        let segment = place.and_then(|place| place.segment());
        segment.is_some_and(|vni| vni.get() == PROVISIONING_VNI)
    }

    /// Takes the carrier of a machine's cable away, or gives it back.
    pub(crate) fn set_carrier(&self, cable: &Cable, up: bool) {
        if let Some(leaf) = self.leaves.get(cable.leaf) {
            leaf.drift(|seen| {
                if let Some(link) = seen.links.get_mut(cable.port.as_str()) {
                    link.oper_up = up;
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
