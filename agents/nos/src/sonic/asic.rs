//! The ports of the ASIC.

use std::collections::{BTreeMap, BTreeSet};

use super::database::Database;
use super::db::Db;
use super::error::SonicError;
use super::rows::Rows;

const BRIDGE_PORT: &str = "ASIC_STATE:SAI_OBJECT_TYPE_BRIDGE_PORT:";
const ROUTER_INTERFACE: &str = "ASIC_STATE:SAI_OBJECT_TYPE_ROUTER_INTERFACE:";
const GROUP_MEMBER: &str = "ASIC_STATE:SAI_OBJECT_TYPE_ISOLATION_GROUP_MEMBER:";
/// The key of the names of the ASIC's ports.
pub(super) const NAMES: &str = "COUNTERS_PORT_NAME_MAP";

/// The places that the ASIC has its ports in, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asic {
    /// Ports in a bridge.
    pub bridged: BTreeSet<String>,
    /// Ports that are routed.
    pub routed: BTreeSet<String>,
    /// Ports in a bridge that reach no other port of their isolation group.
    pub isolated: BTreeSet<String>,
}

impl Asic {
    /// Reads the ASIC's ports.
    pub(super) async fn read(database: &Database) -> Result<Self, SonicError> {
        let map = NAMES.to_owned();
        let names = database
            .rows(Db::Counters, std::slice::from_ref(&map))
            .await?;
        let tables = [BRIDGE_PORT, ROUTER_INTERFACE, GROUP_MEMBER];
        let keys = database.keys(Db::Asic, &tables).await?;
        let rows = database.rows(Db::Asic, &keys).await?;
        Ok(Self::of(&names, &rows))
    }

    /// The ports that rows describe. `names` has the row with the names of ports.
    #[must_use]
    pub fn of(names: &Rows, rows: &Rows) -> Self {
        let names = names.get(NAMES).into_iter().flatten();
        let names: BTreeMap<&str, &str> = names
            .map(|(name, id)| (id.as_str(), name.as_str()))
            .collect();
        // Bridge ports by the group that they are in.
        let members: BTreeSet<(&str, &str)> = rows
            .iter()
            .filter(|(key, _)| key.starts_with(GROUP_MEMBER))
            .filter_map(|(_, row)| {
                let group = row.get("SAI_ISOLATION_GROUP_MEMBER_ATTR_ISOLATION_GROUP_ID")?;
                let object = row.get("SAI_ISOLATION_GROUP_MEMBER_ATTR_ISOLATION_OBJECT")?;
                Some((group.as_str(), object.as_str()))
            })
            .collect();
        let mut out = Self::default();
        for (key, row) in rows {
            let name = |field| names.get(row.get(field)?.as_str()).copied();
            if let Some(id) = key.strip_prefix(BRIDGE_PORT) {
                let Some(name) = name("SAI_BRIDGE_PORT_ATTR_PORT_ID") else {
                    continue;
                };
                out.bridged.insert(name.to_owned());
                let group = row.get("SAI_BRIDGE_PORT_ATTR_ISOLATION_GROUP");
                if group.is_some_and(|group| members.contains(&(group.as_str(), id))) {
                    out.isolated.insert(name.to_owned());
                }
            } else if key.starts_with(ROUTER_INTERFACE) {
                let name = name("SAI_ROUTER_INTERFACE_ATTR_PORT_ID");
                out.routed.extend(name.map(str::to_owned));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Row;
    use super::*;

    fn row(fields: &[(&str, &str)]) -> Row {
        let fields = fields.iter();
        fields
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_port_is_isolated_from_the_members_of_its_own_group_only() {
        let names = [("Ethernet0", "oid:0x1"), ("Ethernet4", "oid:0x2")];
        let names = Rows::from([(NAMES.to_owned(), row(&names))]);
        let bridge_port = |port: &str, group: &str| {
            row(&[
                ("SAI_BRIDGE_PORT_ATTR_PORT_ID", port),
                ("SAI_BRIDGE_PORT_ATTR_ISOLATION_GROUP", group),
            ])
        };
        let member = |group: &str, object: &str| {
            row(&[
                ("SAI_ISOLATION_GROUP_MEMBER_ATTR_ISOLATION_GROUP_ID", group),
                ("SAI_ISOLATION_GROUP_MEMBER_ATTR_ISOLATION_OBJECT", object),
            ])
        };
        let isolated = |group: &str, member_of: &str| {
            let rows = Rows::from([
                (
                    format!("{BRIDGE_PORT}oid:0x3a1"),
                    bridge_port("oid:0x1", group),
                ),
                (
                    format!("{BRIDGE_PORT}oid:0x3a2"),
                    bridge_port("oid:0x2", "oid:0x0"),
                ),
                (
                    format!("{BRIDGE_PORT}oid:0x3a3"),
                    bridge_port("oid:0x9", group),
                ),
                (
                    format!("{GROUP_MEMBER}oid:0x77"),
                    member(member_of, "oid:0x3a1"),
                ),
            ]);
            let asic = Asic::of(&names, &rows);
            assert_eq!(asic.bridged.len(), 2);
            asic.isolated.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(isolated("oid:0x55", "oid:0x55"), ["Ethernet0"]);
        assert!(isolated("oid:0x0", "oid:0x55").is_empty(), "not bound");
        assert!(isolated("oid:0x55", "oid:0x56").is_empty(), "another group");
    }
}
