//! IP prefixes that a neighbour announces by EVPN, as FRR shows them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::model::InterfaceName;
use crate::Vni;

/// The command, for errors.
pub(super) const COMMAND: &str = "show bgp l2vpn evpn neighbors PORT routes json";

/// Most routes of a neighbour that are read. More are left out.
pub const ROUTES_MAX: usize = 20_000;

/// EVPN's type of routes to IP prefixes (RFC 9136).
const IP_PREFIX: u64 = 5;

/// A route to an IP prefix that a neighbour announces, and that its import permits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnnouncedPrefix {
    /// VNIs of its route targets, by which switches import it.
    pub vnis: BTreeSet<Vni>,
    /// The prefix.
    pub prefix: IpNet,
}

/// The command whose output is read.
pub(super) fn command(port: &InterfaceName) -> String {
    COMMAND.replace("PORT", port.as_str())
}

/// Reads the routes of a neighbour. Those of other types, and unknown members, are passed over. FRR
/// prints nothing at all where there is no BGP, and two objects with its reason where there is no such
/// neighbour: no routes.
///
/// # Errors
/// When it is not a JSON object.
pub fn decode(json: &[u8]) -> Result<Vec<AnnouncedPrefix>, serde_json::Error> {
    let objects = serde_json::Deserializer::from_slice(json);
    let mut objects = objects.into_iter::<serde_json::Map<String, Value>>();
    let Some(shown) = objects.next().transpose()? else {
        return Ok(Vec::new());
    };
    // By route distinguisher, then by prefix.
    let prefixes = shown.values().filter_map(Value::as_object);
    let prefixes = prefixes.flat_map(|of| of.values());
    let paths = prefixes.filter_map(|prefix| prefix.get("paths")?.as_array());
    let paths = paths.flatten().filter_map(path);
    Ok(paths.take(ROUTES_MAX).collect())
}

fn path(path: &Value) -> Option<AnnouncedPrefix> {
    if path.get("routeType")?.as_u64()? != IP_PREFIX {
        return None;
    }
    let address: IpAddr = path.get("ip")?.as_str()?.parse().ok()?;
    let length = u8::try_from(path.get("ipLen")?.as_u64()?).ok()?;
    let communities = path.get("extendedCommunity")?.get("string")?.as_str()?;
    let targets = communities.split_whitespace();
    let vnis = targets.filter_map(|word| {
        let (_, vni) = word.strip_prefix("RT:")?.rsplit_once(':')?;
        Vni::new(vni.parse().ok()?).ok()
    });
    Some(AnnouncedPrefix {
        vnis: vnis.collect(),
        prefix: IpNet::new(address, length).ok()?.trunc(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As FRR 8.4.4 shows them.
    const SHOWN: &str = r#"{"bgpTableVersion":71,"bgpLocalRouterId":"10.0.0.11","defaultLocPrf":100,
"localAS":4200000011,"10.9.9.1:1":{"rd":"10.9.9.1:1",
"[5]:[0]:[24]:[10.77.1.0]":{"prefix":"[5]:[0]:[24]:[10.77.1.0]","prefixLen":352,"paths":[
{"valid":true,"bestpath":true,"pathFrom":"external","routeType":5,"ethTag":0,"ipLen":24,
"ip":"10.77.1.0","peerId":"fe80::1","path":"4210000001",
"extendedCommunity":{"string":"RT:32897:10 ET:8 Rmac:02:00:00:00:ff:01"},
"nexthops":[{"ip":"10.9.9.1","afi":"ipv4","used":true}]}]},
"[5]:[0]:[0]:[::]":{"paths":[{"routeType":5,"ipLen":0,"ip":"::",
"extendedCommunity":{"string":"ET:8 RT:192.0.2.1:11"}}]},
"[3]:[0]:[32]:[10.9.9.1]":{"paths":[{"routeType":3,"ip":"10.9.9.1"}]}},"numPrefix":3}"#;

    #[test]
    fn prefixes_and_the_vnis_of_their_targets_are_read() {
        let found = decode(SHOWN.as_bytes()).unwrap();
        let text = found.iter().map(|of| {
            let vnis: Vec<u32> = of.vnis.iter().map(|vni| vni.get()).collect();
            format!("{} {vnis:?}", of.prefix)
        });
        let text: std::collections::BTreeSet<_> = text.collect();
        let expected = ["10.77.1.0/24 [10]", "::/0 [11]"].map(str::to_owned);
        assert_eq!(text, expected.into());
        let absent = br#"{"malformedAddressOrName":"swp9"} { "warning": "Malformed address" }"#;
        assert_eq!(decode(absent).unwrap(), []);
        assert_eq!(decode(b" \n").unwrap(), []);
        assert!(decode(b"[]").is_err());
    }
}
