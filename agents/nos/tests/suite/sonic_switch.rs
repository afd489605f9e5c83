//! A SONiC switch for tests: redis, a stand-in for its managers and its ASIC, and the back-end.

use std::time::Duration;

use agents_nos::frr::Vtysh;
use agents_nos::sonic::{Address, Config, Sonic};
use agents_nos::{Nos, SwitchModel, plan};

use crate::orchagent::Orchagent;
use crate::redis::{Client, Redis, Row};

/// Rows of a site, which are nobody's to change.
pub(crate) const OTHERS: [(&str, &[(&str, &str)]); 8] = [
    ("FEATURE|bgp", &[("state", "enabled")]),
    ("MGMT_INTERFACE|eth0|10.1.0.5/24", &[("gwaddr", "10.1.0.1")]),
    ("VLAN|Vlan50", &[("vlanid", "50")]),
    ("VLAN|Vlan51", &[("vlanid", "51")]),
    (
        "VXLAN_TUNNEL_MAP|site|map_777_Vlan51",
        &[("vlan", "Vlan51"), ("vni", "777")],
    ),
    ("VRF|Vrf_site", &[("fallback", "false")]),
    ("PORT|Other0", &[("lanes", "9"), ("speed", "100000")]),
    ("LOOPBACK_INTERFACE|Loopback0", &[("NULL", "NULL")]),
];

pub(crate) struct Switch {
    pub(crate) redis: Redis,
    pub(crate) orchagent: Orchagent,
    pub(crate) sonic: Sonic,
}

impl Switch {
    /// A fresh switch with these ports. `frr` is the way to a running FRR. `None` without redis,
    /// which is said.
    pub(crate) fn start(seed: u64, ports: &[&str], frr: Option<Vtysh>) -> Option<Self> {
        let redis = Redis::start()?;
        let mut client = Client::connect(&redis.socket());
        for (key, row) in OTHERS {
            client.set(4, key, row);
        }
        let mac = [("mac", "02:00:00:00:00:01")];
        client.set(4, "DEVICE_METADATA|localhost", &mac);
        client.set(
            4,
            "LOOPBACK_INTERFACE|Loopback0|10.9.0.1/32",
            &[("NULL", "NULL")],
        );
        client.set(4, "VXLAN_TUNNEL|site", &[("src_ip", "10.9.0.1")]);
        client.set(4, "VXLAN_EVPN_NVO|nvo", &[("source_vtep", "site")]);
        for (lane, name) in ports.iter().enumerate() {
            let lane = lane.to_string();
            let row = [
                ("lanes", lane.as_str()),
                ("speed", "25000"),
                ("mtu", "9100"),
            ];
            client.set(4, &format!("PORT|{name}"), &row);
        }
        let orchagent = Orchagent::start(&redis.socket(), seed);
        let sonic = Sonic::open(Config {
            ports: ports.iter().map(|port| (*port).to_owned()).collect(),
            redis: Address::Unix(redis.socket()),
            confirm: Duration::from_secs(20),
            kernel: Some(orchagent.kernel.path().to_owned()),
            frr,
            ..Config::default()
        });
        Some(Self {
            redis,
            orchagent,
            sonic,
        })
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.redis.socket())
    }

    /// Removes the site's own map, which keeps the tunnel's address from being moved.
    pub(crate) fn remove_map_of_site(&self) {
        let mut client = self.client();
        client.run(&["SELECT", "4"]).unwrap();
        client.run(&["DEL", OTHERS[4].0]).unwrap();
    }

    /// Applies what a state needs.
    pub(crate) async fn reach(&self, desired: &SwitchModel) {
        let seen = self.sonic.observe().await.unwrap().model;
        let steps = plan(&seen, desired, self.sonic.capabilities()).steps;
        self.sonic.apply_all(&steps).await.unwrap();
    }

    /// Checks that SONiC would have taken every write, and that the site's rows are as they were.
    pub(crate) fn check(&self) {
        assert_eq!(self.orchagent.wrong(), Vec::<String>::new());
        let rows = self.client().rows(4).unwrap();
        for (key, row) in OTHERS {
            let row = row.iter();
            let row: Row = row
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect();
            assert_eq!(rows[key], row, "{key}");
        }
    }
}
