//! Stands in for SONiC's managers, orchagent and the ASIC: follows `CONFIG_DB`, and tells in the
//! other databases what it has done. It holds rows back until what they need is there, as SONiC
//! does, and notes writes that SONiC's models (sonic-yang-models) or managers do not take.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::redis::{Client, Row};

type Rows = BTreeMap<String, Row>;
/// Rows by database and key.
type Effects = BTreeMap<(u8, String), Row>;

/// Fields by table (sonic-port, sonic-vlan, sonic-interface, sonic-loopback-interface, sonic-vrf,
/// sonic-vxlan, sonic-static-anycast-gateway). `NULL` stands for a row without fields. The table
/// `METALMESH_VRF` has no model, which SONiC permits.
const FIELDS: [(&str, &[&str]); 11] = [
    ("PORT", &["lanes", "speed", "admin_status", "mtu"]),
    ("VLAN", &["vlanid", "mtu", "admin_status"]),
    ("VLAN_MEMBER", &["tagging_mode"]),
    (
        "VLAN_INTERFACE",
        &["vrf_name", "static_anycast_gateway", "NULL"],
    ),
    (
        "INTERFACE",
        &["vrf_name", "ipv6_use_link_local_only", "NULL"],
    ),
    ("LOOPBACK_INTERFACE", &["NULL"]),
    ("VRF", &["fallback", "vni"]),
    ("VXLAN_TUNNEL", &["src_ip"]),
    ("VXLAN_TUNNEL_MAP", &["vlan", "vni"]),
    ("VXLAN_EVPN_NVO", &["source_vtep"]),
    ("SAG", &["gateway_mac"]),
];

/// The stand-in. It ends with its redis.
pub(crate) struct Orchagent {
    /// The kernel's description of the ports, of which those in the bridge have a flag.
    pub(crate) kernel: tempfile::TempDir,
    wrong: Arc<Mutex<Vec<String>>>,
    /// `true` if it does nothing more.
    pub(crate) stalls: Arc<std::sync::atomic::AtomicBool>,
    _thread: JoinHandle<()>,
}

impl Orchagent {
    pub(crate) fn start(socket: &Path, seed: u64) -> Self {
        let mut news = Client::connect(socket);
        let mut client = Client::connect(socket);
        let wrong: Arc<Mutex<Vec<String>>> = Arc::default();
        let stalls: Arc<std::sync::atomic::AtomicBool> = Arc::default();
        let (told, stopped) = (Arc::clone(&wrong), Arc::clone(&stalls));
        let patterns = ["__keyspace@4__:*", "ISOLATION_GROUP_TABLE_CHANNEL@0"];
        news.run(&["PSUBSCRIBE", patterns[0], patterns[1]]).unwrap();
        news.read().unwrap();
        let kernel = tempfile::tempdir().unwrap();
        let mut follower = Follower {
            kernel: kernel.path().to_owned(),
            effects: Effects::new(),
            groups: Rows::new(),
        };
        follower.follow(&mut client, &told).unwrap();
        let thread = std::thread::spawn(move || {
            let mut dice = seed;
            while news.read().is_ok() {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if seed != 0 && dice >> 61 == 0 {
                    // A manager that is busy.
                    std::thread::sleep(Duration::from_millis(7));
                }
                if stopped.load(std::sync::atomic::Ordering::Relaxed) {
                    continue;
                }
                if follower.follow(&mut client, &told).is_err() {
                    return;
                }
            }
        });
        Self {
            kernel,
            wrong,
            stalls,
            _thread: thread,
        }
    }

    /// Writes that SONiC does not take.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.wrong.lock().unwrap().clone()
    }
}

/// State of the stand-in: its work so far.
struct Follower {
    kernel: PathBuf,
    effects: Effects,
    /// Isolation groups by name.
    groups: Rows,
}

impl Follower {
    fn follow(&mut self, client: &mut Client, wrong: &Mutex<Vec<String>>) -> std::io::Result<()> {
        self.take_groups(client)?;
        let config = client.rows(4)?;
        let mut now = effects(&config);
        isolate(&self.groups, &mut now);
        self.bridge(&now)?;
        wrong.lock().unwrap().extend(violations(&config));
        tell(client, &self.effects, &now)?;
        self.effects = now;
        Ok(())
    }

    /// Takes the groups that somebody has written, as a `ConsumerStateTable` does.
    fn take_groups(&mut self, client: &mut Client) -> std::io::Result<()> {
        client.run(&["SELECT", "0"])?;
        for name in client.run(&["SPOP", "ISOLATION_GROUP_TABLE_KEY_SET", "9"])? {
            let key = format!("_ISOLATION_GROUP_TABLE:{name}");
            let words = client.run(&["HGETALL", &key])?;
            client.run(&["DEL", &key])?;
            let pairs = words
                .chunks(2)
                .map(|pair| (pair[0].clone(), pair[1].clone()));
            let group = self.groups.entry(name).or_default();
            group.extend(pairs);
            assert_eq!(group["TYPE"], "bridge-port");
        }
        Ok(())
    }

    /// Puts ports into the kernel's bridge, with a new flag, and takes others out.
    fn bridge(&self, now: &Effects) -> std::io::Result<()> {
        let ports = |effects: &Effects| {
            let keys = effects.keys().filter(|(db, _)| *db == 1);
            let ports = keys.filter_map(|(_, key)| Some(key.split_once(BRIDGE_PORT)?.1.to_owned()));
            ports.collect::<std::collections::BTreeSet<_>>()
        };
        let (before, now) = (ports(&self.effects), ports(now));
        for port in before.difference(&now) {
            std::fs::remove_dir_all(self.kernel.join(port))?;
        }
        for port in now.difference(&before) {
            let directory = self.kernel.join(port).join("brport");
            std::fs::create_dir_all(&directory)?;
            std::fs::write(directory.join("isolated"), "0\n")?;
        }
        Ok(())
    }
}

/// The start of a bridge port's key, before the port's name.
const BRIDGE_PORT: &str = "ASIC_STATE:SAI_OBJECT_TYPE_BRIDGE_PORT:oid:b";

/// Binds the bridge ports of groups to them, and makes them members.
fn isolate(groups: &Rows, out: &mut Effects) {
    for (name, group) in groups {
        out.insert((0, format!("ISOLATION_GROUP_TABLE:{name}")), group.clone());
        let id = format!("oid:g{name}");
        for port in group["PORTS"].split(',') {
            if let Some(row) = out.get_mut(&(1, format!("{BRIDGE_PORT}{port}"))) {
                row.insert("SAI_BRIDGE_PORT_ATTR_ISOLATION_GROUP".into(), id.clone());
            }
        }
        for port in group["MEMBERS"].split(',') {
            if out.contains_key(&(1, format!("{BRIDGE_PORT}{port}"))) {
                let attribute = |name| format!("SAI_ISOLATION_GROUP_MEMBER_ATTR_ISOLATION_{name}");
                let row = [
                    (attribute("GROUP_ID"), id.clone()),
                    (attribute("OBJECT"), format!("oid:b{port}")),
                ];
                let key = format!("ASIC_STATE:SAI_OBJECT_TYPE_ISOLATION_GROUP_MEMBER:oid:m{port}");
                out.insert((1, key), row.into());
            }
        }
    }
}

fn tell(client: &mut Client, before: &Effects, now: &Effects) -> std::io::Result<()> {
    for ((db, key), _) in before.iter().filter(|(key, _)| !now.contains_key(*key)) {
        client.run(&["SELECT", &db.to_string()])?;
        client.run(&["DEL", key])?;
    }
    for ((db, key), row) in now
        .iter()
        .filter(|(key, row)| before.get(*key) != Some(*row))
    {
        client.run(&["SELECT", &db.to_string()])?;
        client.run(&["DEL", key])?;
        let fields = row.iter().flat_map(|(name, value)| [name.as_str(), value]);
        let words: Vec<&str> = ["HSET", key.as_str()].into_iter().chain(fields).collect();
        client.run(&words)?;
    }
    Ok(())
}

fn effects(config: &Rows) -> Effects {
    let mut out = Effects::new();
    let one = |name: &str, value: &str| Row::from([(name.to_owned(), value.to_owned())]);
    let has = |key: String| config.contains_key(&key);
    for (key, row) in config {
        let words: Vec<&str> = key.split('|').collect();
        let mut appl = |key: String| out.insert((0, key), row.clone());
        match words[..] {
            ["PORT", port] => {
                let mut row = row.clone();
                let up = row
                    .get("admin_status")
                    .cloned()
                    .unwrap_or_else(|| "down".into());
                row.insert("oper_status".into(), up);
                out.insert((0, format!("PORT_TABLE:{port}")), row);
                let map = out.entry((2, "COUNTERS_PORT_NAME_MAP".into())).or_default();
                map.insert(port.into(), format!("oid:{port}"));
            }
            ["VLAN", vlan] => {
                appl(format!("VLAN_TABLE:{vlan}"));
                out.insert((6, format!("VLAN_TABLE|{vlan}")), one("state", "ok"));
            }
            ["VLAN_MEMBER", vlan, port] if has(format!("VLAN|{vlan}")) => {
                appl(format!("VLAN_MEMBER_TABLE:{vlan}:{port}"));
                let row = one("SAI_BRIDGE_PORT_ATTR_PORT_ID", &format!("oid:{port}"));
                out.insert((1, format!("{BRIDGE_PORT}{port}")), row);
            }
            ["INTERFACE" | "VLAN_INTERFACE" | "LOOPBACK_INTERFACE", name] => {
                let vrf = row.get("vrf_name");
                if vrf.is_none_or(|vrf| has(format!("VRF|{vrf}"))) {
                    appl(format!("INTF_TABLE:{name}"));
                    let row = one("SAI_ROUTER_INTERFACE_ATTR_PORT_ID", &format!("oid:{name}"));
                    let key = format!("ASIC_STATE:SAI_OBJECT_TYPE_ROUTER_INTERFACE:oid:r{name}");
                    out.insert((1, key), row);
                }
            }
            [
                "INTERFACE" | "VLAN_INTERFACE" | "LOOPBACK_INTERFACE",
                name,
                address,
            ] if !address.starts_with("169.254.") => {
                appl(format!("INTF_TABLE:{name}:{address}"));
            }
            ["VRF", name] => {
                appl(format!("VRF_TABLE:{name}"));
                out.insert((6, format!("VRF_OBJECT_TABLE|{name}")), one("state", "ok"));
            }
            ["VXLAN_TUNNEL", name] => {
                appl(format!("VXLAN_TUNNEL_TABLE:{name}"));
            }
            ["VXLAN_EVPN_NVO", name] => {
                appl(format!("VXLAN_EVPN_NVO_TABLE:{name}"));
            }
            ["VXLAN_TUNNEL_MAP", tunnel, map] if has(format!("VLAN|{}", row["vlan"])) => {
                appl(format!("VXLAN_TUNNEL_MAP_TABLE:{tunnel}:{map}"));
            }
            _ => {}
        }
    }
    out
}

/// Writes that the models and managers refuse.
fn violations(config: &Rows) -> Vec<String> {
    let mut out = Vec::new();
    let has = |key: String| config.contains_key(&key);
    let mut untagged: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut vnis, mut vlans) = (Vec::new(), Vec::new());
    for (key, row) in config {
        let words: Vec<&str> = key.split('|').collect();
        let mut check = |is_right: bool, what: &str| {
            if !is_right {
                out.push(format!("{key}: {what}"));
            }
        };
        if let Some((_, fields)) = FIELDS.iter().find(|(table, _)| *table == words[0]) {
            check(
                row.keys().all(|name| fields.contains(&name.as_str())),
                "unknown field",
            );
        }
        let vrf = row.get("vrf_name");
        check(vrf.is_none_or(|vrf| has(format!("VRF|{vrf}"))), "no VRF");
        match words[..] {
            ["PORT", _] => check(row.contains_key("lanes"), "no lanes"),
            ["VLAN", name] => {
                let id = row.get("vlanid").map(String::as_str);
                check(id == name.strip_prefix("Vlan"), "another vlanid");
            }
            ["VLAN_MEMBER", vlan, port] => {
                check(has(format!("VLAN|{vlan}")), "no VLAN");
                check(!has(format!("INTERFACE|{port}")), "a router interface");
                let count = untagged.entry(port).or_default();
                *count += 1;
                check(*count == 1, "untagged twice");
            }
            ["VLAN_INTERFACE", vlan, ..] => check(has(format!("VLAN|{vlan}")), "no VLAN"),
            ["VXLAN_TUNNEL_MAP", tunnel, _] => {
                check(has(format!("VXLAN_TUNNEL|{tunnel}")), "no tunnel");
                check(has(format!("VLAN|{}", row["vlan"])), "no VLAN");
                check(!vnis.contains(&&row["vni"]), "VNI twice");
                check(!vlans.contains(&&row["vlan"]), "VLAN twice");
                vnis.push(&row["vni"]);
                vlans.push(&row["vlan"]);
            }
            ["VXLAN_EVPN_NVO", _] => {
                check(
                    has(format!("VXLAN_TUNNEL|{}", row["source_vtep"])),
                    "no tunnel",
                );
            }
            _ => {}
        }
        if let [table, name, _] = words[..]
            && table.ends_with("INTERFACE")
            && table != "MGMT_INTERFACE"
        {
            check(has(format!("{table}|{name}")), "no interface");
        }
    }
    let vrfs = config.iter().filter(|(key, _)| key.starts_with("VRF|"));
    for (key, row) in vrfs {
        let vni = row.get("vni").filter(|vni| *vni != "0");
        if vni.is_some_and(|vni| !vnis.contains(&vni)) {
            out.push(format!("{key}: no VLAN for the VNI"));
        }
    }
    out
}
