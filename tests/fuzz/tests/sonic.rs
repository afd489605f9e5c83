//! Fuzzes what the switch agent reads from SONiC's databases.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use bolero::check;

#[test]
fn fuzz_redis_answer() {
    check!().for_each(|bytes: &[u8]| {
        let _ = agents_nos::sonic::is_answer(bytes);
    });
}

#[test]
fn fuzz_sonic_rows() {
    type Words = (u8, String, String, String);
    let tables = [
        "PORT|",
        "VLAN|",
        "VLAN_MEMBER|",
        "VLAN_INTERFACE|",
        "INTERFACE|",
        "VRF|Vrf",
        "VXLAN_TUNNEL|",
        "VXLAN_TUNNEL_MAP|",
        "VXLAN_EVPN_NVO|",
        "METALMESH_VRF|Vrf",
        "METALMESH_SEGMENT|mm_segment_",
        "LOOPBACK_INTERFACE|",
        "PORTCHANNEL_MEMBER|",
    ];
    let fields = [
        "vlan",
        "vni",
        "vlanid",
        "mtu",
        "vrf_name",
        "src_ip",
        "source_vtep",
        "table",
    ];
    check!()
        .with_type::<Vec<Words>>()
        .for_each(|rows: &Vec<Words>| {
            let mut seen = agents_nos::sonic::Snapshot::default();
            for (number, one, other, value) in rows {
                let number = usize::from(*number);
                let key = format!("{}{one}|{other}", tables[number % tables.len()]);
                let row = seen
                    .config
                    .entry(key.trim_end_matches('|').to_owned())
                    .or_default();
                row.insert(fields[number % fields.len()].to_owned(), value.clone());
                let group = seen
                    .appl
                    .entry("ISOLATION_GROUP_TABLE:metalmesh".to_owned());
                let list = if number.is_multiple_of(2) {
                    "PORTS"
                } else {
                    "MEMBERS"
                };
                group.or_default().insert(list.to_owned(), value.clone());
            }
            let _ = seen.observation(|_| true);
        });
}

#[test]
fn fuzz_asic_ports() {
    type Words = (u8, String, String);
    let kinds = [
        "BRIDGE_PORT:",
        "ROUTER_INTERFACE:",
        "ISOLATION_GROUP_MEMBER:",
    ];
    let fields = [
        "SAI_BRIDGE_PORT_ATTR_PORT_ID",
        "SAI_BRIDGE_PORT_ATTR_ISOLATION_GROUP",
        "SAI_ROUTER_INTERFACE_ATTR_PORT_ID",
        "SAI_ISOLATION_GROUP_MEMBER_ATTR_ISOLATION_GROUP_ID",
        "SAI_ISOLATION_GROUP_MEMBER_ATTR_ISOLATION_OBJECT",
    ];
    check!()
        .with_type::<Vec<Words>>()
        .for_each(|words: &Vec<Words>| {
            let mut rows = std::collections::BTreeMap::new();
            let mut names = std::collections::BTreeMap::new();
            for (number, id, value) in words {
                let number = usize::from(*number);
                let kind = kinds[number % kinds.len()];
                let key = format!("ASIC_STATE:SAI_OBJECT_TYPE_{kind}{id}");
                let row: &mut std::collections::BTreeMap<_, _> = rows.entry(key).or_default();
                row.insert(fields[number % fields.len()].to_owned(), value.clone());
                names.insert(id.clone(), value.clone());
            }
            let names = [("COUNTERS_PORT_NAME_MAP".to_owned(), names)].into();
            let asic = agents_nos::sonic::Asic::of(&names, &rows);
            assert!(asic.isolated.is_subset(&asic.bridged));
        });
}

#[test]
fn fuzz_port_numbers() {
    check!()
        .with_type::<Vec<(bool, String)>>()
        .for_each(|values: &Vec<(bool, String)>| {
            let mut rows = agents_nos::sonic::PortRows::default();
            let names = [("p1".to_owned(), "oid:0x1".to_owned())];
            let names = names.into_iter().collect();
            rows.counters
                .insert("COUNTERS_PORT_NAME_MAP".to_owned(), names);
            for (is_counter, value) in values {
                let (table, key, field) = if *is_counter {
                    (
                        &mut rows.counters,
                        "COUNTERS:oid:0x1",
                        "SAI_PORT_STAT_IF_IN_OCTETS",
                    )
                } else {
                    (&mut rows.state, "TRANSCEIVER_DOM_SENSOR|p1", "rx1power")
                };
                let row = table.entry(key.to_owned()).or_default();
                row.insert(field.to_owned(), value.clone());
            }
            rows.state
                .entry("TRANSCEIVER_INFO|p1".to_owned())
                .or_default();
            let _ = rows.port("p1");
        });
}
