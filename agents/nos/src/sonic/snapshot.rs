//! The rows of the databases at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::asic::Asic;
use super::names::{MapUse, vlan_of};
use super::rows::{Row, Rows};
use crate::model::Vlan;
use crate::vni::Vni;

/// The rows of the databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Rows of `CONFIG_DB` by key, of the tables that matter.
    pub config: Rows,
    /// Rows of `APPL_DB` by key, for the objects in `config`.
    pub appl: Rows,
    /// Rows of `STATE_DB` by key, for the objects in `config`.
    pub state: Rows,
    /// The ports of the ASIC.
    pub asic: Asic,
    /// Ports whose kernel interface does not agree with the ASIC about their isolation.
    pub half_isolated: BTreeSet<String>,
}

/// A map from VLAN to VNI: of a tunnel, or noted for a segment that ends at the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map<'a> {
    pub(super) key: &'a str,
    pub(super) vlan: Vlan,
    pub(super) vni: Vni,
    /// `None` if it is somebody else's.
    pub(super) of: Option<MapUse>,
    /// `true` if it is only noted.
    pub(super) is_local: bool,
}

impl<'a> Map<'a> {
    fn read(key: &'a str, row: &Row, is_local: bool) -> Option<Self> {
        let (_, name) = key.rsplit_once('|')?;
        let vni = Vni::new(row.get("vni")?.parse().ok()?).ok()?;
        Some(Self {
            key,
            vlan: vlan_of(row.get("vlan")?)?,
            vni,
            of: MapUse::of(name, vni),
            is_local,
        })
    }
}

impl Snapshot {
    /// A field of a row of `CONFIG_DB`.
    pub(super) fn field(&self, key: &str, field: &str) -> Option<&str> {
        self.config.get(key)?.get(field).map(String::as_str)
    }

    /// The rows of a table that have one more word in their key, by that word.
    pub(super) fn rows<'a>(&'a self, table: &'a str) -> impl Iterator<Item = (&'a str, &'a Row)> {
        let rows = self.config.range(table.to_owned()..);
        let rows = rows.map_while(move |(key, row)| Some((key.strip_prefix(table)?, row)));
        rows.filter(|(rest, _)| !rest.contains('|'))
    }

    /// Name of the tunnel that EVPN uses.
    pub(super) fn tunnel(&self) -> Option<&str> {
        let (_, row) = self.rows("VXLAN_EVPN_NVO|").next()?;
        let name = row.get("source_vtep")?;
        let key = format!("VXLAN_TUNNEL|{name}");
        self.config.contains_key(&key).then_some(name)
    }

    /// Source address of the tunnel.
    pub(super) fn source(&self) -> Option<IpAddr> {
        let key = format!("VXLAN_TUNNEL|{}", self.tunnel()?);
        self.field(&key, "src_ip")?.parse().ok()
    }

    /// Source address of the tunnel, if a loopback has it.
    pub(super) fn vtep(&self) -> Option<IpAddr> {
        let source = self.source()?;
        let loopbacks = self.config.range("LOOPBACK_INTERFACE|".to_owned()..);
        let mut loopbacks = loopbacks.map_while(|(key, _)| key.strip_prefix("LOOPBACK_INTERFACE|"));
        let has = loopbacks.any(|rest| {
            let address = rest.split_once('|').map(|(_, address)| address);
            let address = address.and_then(|address| address.parse::<IpNet>().ok());
            address.is_some_and(|address| address.addr() == source)
        });
        has.then_some(source)
    }

    /// The maps from VLAN to VNI, of all tunnels, and of segments without a tunnel.
    pub(super) fn maps(&self) -> impl Iterator<Item = Map<'_>> {
        let tables = [("VXLAN_TUNNEL_MAP|", false), ("METALMESH_SEGMENT|", true)];
        tables.into_iter().flat_map(|(table, is_local)| {
            let rows = self.config.range(table.to_owned()..);
            let rows = rows.take_while(move |(key, _)| key.starts_with(table));
            rows.filter_map(move |(key, row)| Map::read(key, row, is_local))
        })
    }

    /// The VLANs of segments.
    pub(super) fn segments(&self) -> BTreeMap<Vlan, Vni> {
        let ours = |map: &Map<'_>| matches!(map.of, Some(MapUse::Segment | MapUse::Vlan));
        let maps = self.maps().filter(ours);
        maps.map(|map| (map.vlan, map.vni)).collect()
    }

    /// The addresses in the keys of an interface's rows, as they are written.
    pub(super) fn addresses<'a>(
        &'a self,
        table: &str,
        interface: &str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let prefix = format!("{table}|{interface}|");
        let rows = self.config.range(prefix.clone()..);
        rows.map_while(move |(key, _)| Some((key.as_str(), key.strip_prefix(&prefix)?)))
    }

    /// Keys of the rows that put a port into a VLAN or a port channel.
    pub(super) fn memberships<'a>(&'a self, port: &'a str) -> impl Iterator<Item = &'a str> {
        let tables = ["PORTCHANNEL_MEMBER|", "VLAN_MEMBER|"];
        tables.into_iter().flat_map(move |table| {
            let rows = self.config.range(table.to_owned()..);
            let keys = rows.map(|(key, _)| key.as_str());
            let keys = keys.take_while(move |key| key.starts_with(table));
            keys.filter(move |key| key.rsplit('|').next() == Some(port))
        })
    }

    /// `true` if any port is in a VLAN, also one of others.
    pub(super) fn has_members(&self, vlan: &str) -> bool {
        let prefix = format!("VLAN_MEMBER|{vlan}|");
        let next = self.config.range(prefix.clone()..).next();
        next.is_some_and(|(key, _)| key.starts_with(&prefix))
    }

    /// `true` if `STATE_DB` has an object.
    pub(super) fn is_made(&self, key: &str) -> bool {
        self.state.contains_key(key)
    }

    /// A field of a row of `APPL_DB`.
    pub(super) fn applied(&self, key: &str, field: &str) -> Option<&str> {
        self.appl.get(key)?.get(field).map(String::as_str)
    }
}
