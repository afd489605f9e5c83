//! Reads prefix lists, AS-path lists and route-maps.

use super::{Reader, Section};
use crate::Vni;
use crate::frr::model::{
    Action, AsPathKey, AsPathRegex, AsPathRule, CommunityKey, CommunityKind, CommunityRegex,
    CommunityRule, InterfaceName, ObjectName, PrefixEntry, PrefixListKey, PrefixRule,
    RouteMapEntry, RouteMapKey,
};

impl Reader {
    /// An entry that denies is foreign, also in a list of ours, unless it closes the list. Its
    /// number is remembered, so that it is not given to another.
    pub(super) fn prefix_list(&mut self, words: &[&str]) -> Option<()> {
        let (ip, list, sequence, rest) = match words {
            [ip, _, list, "seq", sequence, rest @ ..] => (ip, list, sequence, rest),
            _ => return None,
        };
        let list = ObjectName::new(list).ok()?;
        let sequence = sequence.parse().ok().filter(|n| *n > 0)?;
        let ipv6 = *ip == "ipv6";
        let key = PrefixListKey {
            ipv6,
            list: list.clone(),
        };
        if *rest == ["deny", "any"] && sequence == PrefixListKey::LAST {
            self.seen.note_closed(key);
            return Some(());
        }
        self.seen.numbers.take(key, sequence);
        let ["permit", rule @ ..] = rest else {
            return None;
        };
        let rule = PrefixRule::parse(rule, ipv6)?;
        self.seen.note_entry(PrefixEntry { list, rule }, sequence);
        Some(())
    }

    pub(super) fn as_path(&mut self, words: &[&str]) -> Option<()> {
        let [_, _, _, list, "seq", sequence, action, regex] = words else {
            return None;
        };
        let key = AsPathKey {
            list: ObjectName::new(list).ok()?,
            sequence: sequence.parse().ok().filter(|n| *n > 0)?,
        };
        let rule = AsPathRule {
            action: Action::parse(action)?,
            regex: AsPathRegex::new(regex).ok()?,
        };
        self.seen.config.as_paths.insert(key, rule);
        Some(())
    }

    pub(super) fn community(&mut self, words: &[&str]) -> Option<()> {
        let [_, _, _, list, "seq", sequence, action, regex] = words else {
            return None;
        };
        let key = CommunityKey {
            list: ObjectName::new(list).ok()?,
            sequence: sequence.parse().ok().filter(|n| *n > 0)?,
        };
        let rule = CommunityRule {
            action: Action::parse(action)?,
            regex: CommunityRegex::new(regex).ok()?,
        };
        self.seen.config.communities.insert(key, rule);
        Some(())
    }

    pub(super) fn open_route_map(&mut self, words: &[&str]) -> Option<()> {
        let [_, map, action, sequence] = words else {
            return None;
        };
        let key = RouteMapKey {
            map: ObjectName::new(map).ok()?,
            sequence: sequence.parse().ok().filter(|n| *n > 0)?,
        };
        let entry = RouteMapEntry::new(Action::parse(action)?);
        self.seen.config.route_maps.insert(key.clone(), entry);
        self.route_map = Some(key);
        self.section = Section::RouteMap;
        Some(())
    }

    pub(super) fn in_route_map(&mut self, words: &[&str]) -> Option<()> {
        let key = self.route_map.as_ref()?;
        let entry = self.seen.config.route_maps.get_mut(key)?;
        let name = |text: &str| ObjectName::new(text).ok();
        match words {
            ["match", "ip", "address", "prefix-list", list] => {
                entry.match_ipv4 = Some(name(list)?);
            }
            ["match", "ipv6", "address", "prefix-list", list] => {
                entry.match_ipv6 = Some(name(list)?);
            }
            ["match", "as-path", list] => entry.match_as_path = Some(name(list)?),
            ["match", "extcommunity", list] => entry.match_communities = Some(name(list)?),
            ["match", "interface", interface] => {
                entry.match_interface = Some(InterfaceName::new(interface).ok()?);
            }
            ["match", "evpn", "vni", vni] => {
                entry.match_vni = Some(Vni::new(vni.parse().ok()?).ok()?);
            }
            ["match", "evpn", "route-type", "prefix"] => entry.match_evpn_prefix = true,
            ["match", "ip", "next-hop", "address", address] => {
                entry.match_next_hop = Some(address.parse().ok()?);
            }
            ["set", "local-preference", preference] => {
                entry.local_preference = Some(preference.parse().ok()?);
            }
            ["set", "as-path", "prepend", "last-as", "10"] => entry.is_last_resort = true,
            words => {
                let line = words.join(" ");
                let mut kinds = CommunityKind::ALL.into_iter();
                let cleared = kinds.find(|kind| kind.clearing() == line)?;
                entry.cleared.insert(cleared);
            }
        }
        Some(())
    }
}
