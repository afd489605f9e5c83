//! The desired state of a large switch, as control sends it.

use proto_mesh::{PortFilter, PortIntent, PortPlace, Segment, SwitchDesired, Vrf};

/// Front-panel ports.
pub(super) const PORTS: u32 = 64;
/// VRFs.
pub(super) const VRFS: u32 = 500;
/// The segment that machines boot in.
const PROVISIONING: u32 = 4000;
/// VNI of the first VRF.
const FIRST_VNI: u32 = 10_000;
/// Routing table of the first VRF.
const FIRST_TABLE: u32 = 20_000;
/// AS number of the first machine.
const FIRST_ASN: u32 = 4_200_100_000;
/// Prefixes of each version that a machine may announce.
const PREFIXES: u32 = 4;

/// Steps that move a port from one tenant's VRF to another's: its session leaves, it leaves, the
/// prefixes of both versions and the AS path change, it enters, its session enters. VRFs, their
/// instances and the route maps stay.
pub(super) const STEPS_PER_MOVE: u32 = 5 + 4 * PREFIXES;

/// The tenants of all ports: the number of each port's VRF, and with it of its machine.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    tenants: Vec<u32>,
    /// The tenant that gets the next port, unless it has one.
    next: u32,
    generation: u64,
}

impl Orders {
    /// Each port in a VRF of its own; the other VRFs have no port.
    pub(super) fn new() -> Self {
        Self {
            tenants: (0..PORTS).collect(),
            next: PORTS,
            generation: 1,
        }
    }

    /// Gives a port to a tenant that has no port yet.
    pub(super) fn move_port(&mut self, port: usize) {
        while self.tenants.contains(&self.next) {
            self.next = (self.next + 1) % VRFS;
        }
        if let Some(tenant) = self.tenants.get_mut(port) {
            *tenant = self.next;
        }
        self.generation += 1;
    }

    /// Gives every port to another tenant.
    pub(super) fn move_all(&mut self) {
        for tenant in &mut self.tenants {
            *tenant = (*tenant + PORTS) % VRFS;
        }
        self.generation += 1;
    }

    /// The message, without its seal.
    pub(super) fn desired(&self) -> SwitchDesired {
        let ports = self.tenants.iter().enumerate();
        let ports = ports.map(|(port, tenant)| intent(port, *tenant));
        SwitchDesired {
            term: 1,
            generation: self.generation,
            ports: ports.collect(),
            segments: vec![Segment {
                vni: PROVISIONING,
                provisioning: true,
                mtu: 1500,
                ..Segment::default()
            }],
            vrfs: (0..VRFS).map(vrf).collect(),
            ..SwitchDesired::default()
        }
    }
}

fn intent(port: usize, tenant: u32) -> PortIntent {
    let prefixes_v4 = (0..PREFIXES).map(|n| format!("10.{}.{}.{n}/32", tenant / 250, tenant % 250));
    let prefixes_v6 = (0..PREFIXES).map(|n| format!("2001:db8:{tenant:x}::{n:x}/128"));
    PortIntent {
        name: format!("swp{port}"),
        vni: FIRST_VNI + tenant,
        admin_up: true,
        place: PortPlace::Routed.into(),
        filter: Some(PortFilter {
            asn: FIRST_ASN + tenant,
            prefixes_v4: prefixes_v4.collect(),
            prefixes_v6: prefixes_v6.collect(),
            ..PortFilter::default()
        }),
        ..PortIntent::default()
    }
}

fn vrf(tenant: u32) -> Vrf {
    Vrf {
        vni: FIRST_VNI + tenant,
        name: format!("Vrf{}", FIRST_VNI + tenant),
        table: FIRST_TABLE + tenant,
    }
}

#[cfg(test)]
mod tests {
    use agents_core::config::{BgpConfig, Config};
    use agents_core::intent;
    use agents_nos::model::SwitchModel;
    use agents_nos::{Capability, plan};

    use super::*;

    fn config() -> Config {
        Config {
            bgp: Some(BgpConfig {
                asn: 4_200_000_001,
                ..BgpConfig::default()
            }),
            ..Config::new("rack-1", [10, 90, 0, 1].into(), [10, 91, 0, 1].into())
        }
    }

    #[test]
    fn a_moved_port_needs_the_steps_that_are_counted() {
        let mut orders = Orders::new();
        let steps_of = |before: &Orders, after: &Orders| {
            let [before, after] = [before, after].map(|orders| {
                let (model, problems) = intent(&orders.desired(), &config());
                assert_eq!(problems, Vec::<String>::new());
                model
            });
            // A switch with VRFs has it; the plan would set it first.
            let before = SwitchModel {
                is_l3mdev_first: true,
                ..before
            };
            plan(&before, &after, Capability::ALL).steps.len()
        };
        let before = orders.clone();
        orders.move_port(3);
        assert_eq!(steps_of(&before, &orders), STEPS_PER_MOVE as usize);
        let before = orders.clone();
        orders.move_all();
        assert_eq!(
            steps_of(&before, &orders),
            (STEPS_PER_MOVE * PORTS) as usize
        );
    }
}
