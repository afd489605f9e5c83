//! Reads `router bgp`.

use super::{Reader, Section};
use crate::frr::model::{Asn, BgpInstance, BgpVrf, Family, ObjectName, Redistribute, VrfName};

impl Reader {
    pub(super) fn open_instance(&mut self, words: &[&str]) -> Option<()> {
        let (asn, vrf) = match words {
            ["router", "bgp", asn] => (asn, BgpVrf::Default),
            ["router", "bgp", asn, "vrf", name] => (asn, BgpVrf::Tenant(VrfName::new(name).ok()?)),
            _ => return None,
        };
        let asn = Asn::parse(asn)?;
        let policy = !self.datacenter;
        self.seen
            .config
            .bgp
            .entry(vrf)
            .or_insert_with(|| BgpInstance {
                ebgp_requires_policy: policy,
                ipv4_by_default: true,
                ..BgpInstance::new(asn)
            });
        self.section = Section::Bgp(vrf);
        Some(())
    }

    pub(super) fn in_bgp(&mut self, vrf: BgpVrf, words: &[&str]) -> Option<()> {
        if let ["address-family", family @ ..] = words {
            self.section = Section::Family(vrf, Family::parse(family)?);
            return Some(());
        }
        let instance = self.bgp(vrf)?;
        match words {
            ["bgp", "router-id", id] => instance.router_id = Some(id.parse().ok()?),
            ["bgp", "ebgp-requires-policy"] => instance.ebgp_requires_policy = true,
            ["no", "bgp", "ebgp-requires-policy"] => instance.ebgp_requires_policy = false,
            ["bgp", "default", "ipv4-unicast"] => instance.ipv4_by_default = true,
            ["no", "bgp", "default", "ipv4-unicast"] => instance.ipv4_by_default = false,
            ["bgp", "bestpath", "as-path", "multipath-relax"] => instance.multipath_relax = true,
            ["bgp", "graceful-shutdown"] => instance.graceful_shutdown = true,
            ["neighbor", peer, rest @ ..] => return instance.read_peer(peer, rest),
            _ => return None,
        }
        Some(())
    }

    pub(super) fn in_family(&mut self, vrf: BgpVrf, family: Family, words: &[&str]) -> Option<()> {
        let instance = self.bgp(vrf)?;
        match words {
            ["redistribute", "connected"] => {
                *instance.redistribute.of_mut(family)? = Redistribute::Connected;
            }
            ["redistribute", "connected", "route-map", map] => {
                let map = ObjectName::new(map).ok()?;
                *instance.redistribute.of_mut(family)? = Redistribute::Filtered(map);
            }
            ["advertise-all-vni"] if family == Family::Evpn => instance.advertise_all_vni = true,
            ["advertise", "ipv4", "unicast"] if family == Family::Evpn => {
                instance.advertise.ipv4 = true;
            }
            ["advertise", "ipv6", "unicast"] if family == Family::Evpn => {
                instance.advertise.ipv6 = true;
            }
            ["no", "neighbor", peer, "activate"] => {
                instance.peer(peer)?.families.of_mut(family).activate = false;
            }
            ["neighbor", peer, rest @ ..] => {
                let of_family = instance.peer(peer)?.families.of_mut(family);
                return of_family.read(rest);
            }
            _ => return None,
        }
        Some(())
    }
}
