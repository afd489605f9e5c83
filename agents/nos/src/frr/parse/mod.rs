//! Reads FRR's `show running-config`.

mod bgp;
mod filters;
mod peer;

use super::model::{BgpInstance, BgpVrf, Family, RouteMapKey, VrfName};
use super::observed::{ForeignLine, Observed};
use super::render;
use crate::Vni;

/// Longest line that is read, in bytes; FRR's own limit is below it. A longer one is foreign, cut.
const LINE_MAX: usize = 4096;

/// Reads a running configuration. Never fails: every line that is not ours, or that our model
/// cannot say, is in [`Observed::foreign`].
///
/// Written for FRR 8.4, and tolerant of what others print: sections may be indented or not closed,
/// come in any order and more than once.
#[must_use]
pub fn parse(text: &str) -> Observed {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line);
    }
    reader.seen
}

/// The section that the reader is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    /// Outside of every section.
    #[default]
    Top,
    /// `vrf`, of ours.
    Vrf(VrfName),
    /// `router bgp`, of ours.
    Bgp(BgpVrf),
    /// An address family within it.
    Family(BgpVrf, Family),
    /// A route-map's entry, of ours: the one that was read last.
    RouteMap,
    /// A section that is not ours.
    Foreign,
}

#[derive(Debug, Default)]
struct Reader {
    seen: Observed,
    section: Section,
    /// Section that the address family is in.
    outer: Section,
    /// The lines that opened the sections: none, one, or one and an address family.
    context: Vec<String>,
    route_map: Option<RouteMapKey>,
    /// The settings of zebra that were read.
    zebra: [bool; 3],
    /// `true` if external peers without a filter exchange routes unless otherwise configured.
    datacenter: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let text = line.trim();
        if text.len() > LINE_MAX {
            let cut: String = text.chars().take(LINE_MAX / 4).collect();
            return self.foreign(&cut);
        }
        match text {
            "" | "!" | "end" | "exit" | "exit-vrf" => return,
            "Building configuration..." | "Current configuration:" => return,
            "exit-address-family" => return self.leave_family(),
            "frr defaults datacenter" => self.datacenter = true,
            _ => {}
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let top = !line.starts_with(char::is_whitespace);
        if top {
            self.section = Section::Top;
            self.context.clear();
        }
        let family = words.first() == Some(&"address-family");
        if family {
            self.leave_family();
        }
        let known = match self.section {
            Section::Top => self.top(&words),
            Section::Vrf(vrf) => self.vrf(vrf, &words),
            Section::Bgp(vrf) => self.in_bgp(vrf, &words),
            Section::Family(vrf, family) => self.in_family(vrf, family, &words),
            Section::RouteMap => self.in_route_map(&words),
            Section::Foreign => None,
        };
        if known.is_none() {
            self.foreign(text);
        }
        if top || family {
            self.context.push(text.to_owned());
            // A line inside a foreign section is foreign too.
            if known.is_none() {
                self.section = Section::Foreign;
            }
        }
        if top {
            self.outer = self.section;
        }
    }

    fn foreign(&mut self, line: &str) {
        self.seen.foreign.insert(ForeignLine {
            context: self.context.clone(),
            line: line.to_owned(),
        });
    }

    fn leave_family(&mut self) {
        self.context.truncate(1);
        self.section = self.outer;
    }

    /// Reads a line outside of every section. `None` if it is not ours.
    fn top(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["frr", "version" | "defaults", ..] => Some(()),
            ["ip", "router-id", id] | ["router-id", id] => {
                self.seen.config.router_id = Some(id.parse().ok()?);
                Some(())
            }
            ["zebra", "zapi-packets" | "work-queue", _] | ["zebra", "nexthop-group", "keep", _] => {
                let text = words.join(" ");
                let at = render::ZEBRA.iter().position(|line| *line == text)?;
                *self.zebra.get_mut(at)? = true;
                self.seen.config.has_zebra_settings = self.zebra.iter().all(|is_read| *is_read);
                Some(())
            }
            ["vrf", name] => {
                self.section = Section::Vrf(VrfName::new(name).ok()?);
                Some(())
            }
            ["router", "bgp", ..] => self.open_instance(words),
            ["ip" | "ipv6", "prefix-list", ..] => self.prefix_list(words),
            ["bgp", "as-path", "access-list", ..] => self.as_path(words),
            ["bgp", "extcommunity-list", "expanded", ..] => self.community(words),
            ["route-map", ..] => self.open_route_map(words),
            _ => None,
        }
    }

    fn vrf(&mut self, vrf: VrfName, words: &[&str]) -> Option<()> {
        let ["vni", number] = words else { return None };
        let vni = Vni::new(number.parse().ok()?).ok()?;
        self.seen.config.vrfs.insert(vrf, vni);
        Some(())
    }

    fn bgp(&mut self, vrf: BgpVrf) -> Option<&mut BgpInstance> {
        self.seen.config.bgp.get_mut(&vrf)
    }
}
