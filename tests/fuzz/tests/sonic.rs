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
            }
            let _ = seen.observation(|_| true);
        });
}
