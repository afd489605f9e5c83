//! The lab's cables and addresses.
//!
//! ```text
//!            mgmt 10.90.0.0/24 (a bridge)
//!   +-----------+-----------+-----------+-----------+------------+
//!   control .1  services .2  exit .3    admin .5    leaf1 .11    bmc1 .101 …
//!               | pixie,bmc  |                       |  |
//!               |            +---- fabric -----------+  +-- swp1, swp2 … machines
//!               +---- provisioning (10.77.1.0/24) ---+
//! ```
//!
//! `exit` is the router of the tenants' segments and, at the same time, the tenant's laptop.

use std::net::Ipv4Addr;

use anyhow::Result;

use crate::netns::{Namespace, cable};
use crate::state::Record;

pub const CONTROL: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
pub const SERVICES: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 2);
pub const EXIT: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 3);
pub const ADMIN: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 5);
pub const LEAF: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 11);
/// Name and address of a second leaf, which only a drill has.
pub const OTHER_SWITCH: &str = "leaf9";
pub const OTHER_LEAF: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 19);
/// Underlay addresses.
pub const OTHER_VTEP: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 19);
pub const LEAF_VTEP: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 11);
pub const EXIT_VTEP: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 1);
/// pixie's side of the provisioning segment.
pub const PIXIE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
/// The provisioning segment.
pub const PROVISIONING: &str = "10.77.1.0/24";
/// Gateway of every tenant segment.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// What tenants' networks are cut from.
pub const TENANTS: &str = "10.100.0.0/16";
/// Name of the leaf's port towards pixie.
pub const UPLINK: &str = "up1";
/// Room for VXLAN's 50 bytes.
const FABRIC_MTU: u32 = 1600;

/// The namespaces of a lab.
#[derive(Clone, Debug)]
pub struct Topology {
    mgmt: Namespace,
    pub control: Namespace,
    pub services: Namespace,
    pub leaf: Namespace,
    pub exit: Namespace,
    pub admin: Namespace,
}

/// The ways from the management network to machines, installed or not.
fn ways(namespace: &Namespace) -> Result<()> {
    namespace.ip(&format!("route add {PROVISIONING} via {SERVICES}"))?;
    namespace.ip(&format!("route add {TENANTS} via {EXIT}"))
}

/// Where a machine is plugged in.
#[derive(Clone, Debug)]
pub struct Plug {
    pub namespace: Namespace,
    pub port: String,
}

impl Plug {
    fn add(namespace: &Namespace, port: String) -> Result<Self> {
        namespace.ip(&format!("tuntap add dev {port} mode tap"))?;
        namespace.ip(&format!("link set {port} up"))?;
        let namespace = namespace.clone();
        Ok(Self { namespace, port })
    }
}

/// Name of the switch port of a machine, counted from 1.
#[must_use]
pub fn port(machine: usize) -> String {
    format!("swp{machine}")
}

/// Management address of the BMC of a machine, counted from 1.
#[must_use]
pub fn bmc_address(machine: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 90, 0, u8::try_from(100 + machine).unwrap_or(u8::MAX))
}

impl Topology {
    /// Makes all namespaces and cables but those of the machines.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn build(record: &Record) -> Result<Self> {
        let topology = Self {
            mgmt: Namespace::create(record, "mgmt")?,
            control: Namespace::create(record, "control")?,
            services: Namespace::create(record, "services")?,
            leaf: Namespace::create(record, "leaf1")?,
            exit: Namespace::create(record, "exit")?,
            admin: Namespace::create(record, "admin")?,
        };
        topology.management()?;
        topology.fabric()?;
        topology.routes()?;
        Ok(topology)
    }

    /// The namespaces of a lab that was built before.
    #[must_use]
    pub fn existing(record: &Record) -> Self {
        let named = |name| Namespace::existing(record, name);
        Self {
            mgmt: named("mgmt"),
            control: named("control"),
            services: named("services"),
            leaf: named("leaf1"),
            exit: named("exit"),
            admin: named("admin"),
        }
    }

    fn management(&self) -> Result<()> {
        self.mgmt
            .ip("link add mgmt0 type bridge mcast_snooping 0")?;
        self.mgmt.ip("link set mgmt0 up")?;
        for (namespace, address) in [
            (&self.control, CONTROL),
            (&self.services, SERVICES),
            (&self.exit, EXIT),
            (&self.admin, ADMIN),
            (&self.leaf, LEAF),
        ] {
            self.attach(namespace, address)?;
        }
        Ok(())
    }

    /// Plugs a namespace into the management network.
    fn attach(&self, namespace: &Namespace, address: Ipv4Addr) -> Result<()> {
        let [_, _, _, last] = address.octets();
        let plug = format!("plug{last}");
        cable(namespace, "mgmt", &self.mgmt, &plug)?;
        self.mgmt.ip(&format!("link set {plug} master mgmt0"))?;
        namespace.ip(&format!("addr add {address}/24 dev mgmt"))
    }

    /// Makes the namespace of one more host of the management network, with control's ways.
    ///
    /// # Errors
    /// The words of `ip`.
    pub fn add_host(&self, record: &Record, name: &str, address: Ipv4Addr) -> Result<Namespace> {
        let host = Namespace::create(record, name)?;
        self.attach(&host, address)?;
        ways(&host)?;
        Ok(host)
    }

    fn fabric(&self) -> Result<()> {
        cable(&self.leaf, "fab0", &self.exit, "fab0")?;
        for (namespace, vtep) in [(&self.leaf, LEAF_VTEP), (&self.exit, EXIT_VTEP)] {
            namespace.ip(&format!("link set fab0 mtu {FABRIC_MTU}"))?;
            namespace.ip(&format!("addr add {vtep}/24 dev fab0"))?;
        }
        cable(&self.services, "prov0", &self.leaf, UPLINK)?;
        self.services.ip(&format!("addr add {PIXIE}/24 dev prov0"))
    }

    fn routes(&self) -> Result<()> {
        for router in [&self.services, &self.exit] {
            router.sysctl("net.ipv4.ip_forward=1")?;
        }
        self.exit.ip(&format!("addr add {GATEWAY}/32 dev lo"))?;
        [&self.control, &self.admin].into_iter().try_for_each(ways)
    }

    /// Makes the switch port of a machine.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn add_port(&self, machine: usize) -> Result<Plug> {
        Plug::add(&self.leaf, port(machine))
    }

    /// Makes the namespace of a machine's BMC.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn add_bmc(&self, record: &Record, machine: usize) -> Result<Namespace> {
        let bmc = Namespace::create(record, &format!("bmc{machine}"))?;
        self.attach(&bmc, bmc_address(machine))?;
        Ok(bmc)
    }

    /// Makes a bridge at the switch port of a machine, and the port behind it. Like every bridge it
    /// passes no LLDP on (IEEE 802.1Q, 8.6.3), so that whoever holds it can speak as the switch.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn add_bridged_port(&self, record: &Record, machine: usize) -> Result<Plug> {
        let bridge = Namespace::create(record, &format!("bridge{machine}"))?;
        cable(&self.leaf, &port(machine), &bridge, "leaf0")?;
        bridge.ip("link add br0 type bridge")?;
        bridge.ip("link set br0 up")?;
        let plug = Plug::add(&bridge, "host0".to_owned())?;
        for port in ["leaf0", "host0"] {
            bridge.ip(&format!("link set {port} master br0"))?;
        }
        Ok(plug)
    }

    /// Makes the namespace of a second leaf, without ports.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn other_leaf(&self, record: &Record) -> Result<Namespace> {
        let leaf = Namespace::create(record, OTHER_SWITCH)?;
        self.attach(&leaf, OTHER_LEAF)?;
        leaf.ip(&format!("addr add {OTHER_VTEP}/32 dev lo"))?;
        Ok(leaf)
    }

    /// Gives the exit router a leg in a tenant's segment.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn open_segment(&self, vni: u32, prefix: &str) -> Result<()> {
        let exit = &self.exit;
        let device = format!("vx{vni}");
        exit.ip(&format!("link add {device} type vxlan id {vni} local {EXIT_VTEP} dstport 4789 remote {LEAF_VTEP}"))?;
        exit.ip(&format!("link set {device} up"))?;
        exit.ip(&format!("route add {prefix} dev {device}"))
    }
}
