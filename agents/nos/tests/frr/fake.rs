//! FRR as far as deltas need it: keeps lines, with FRR's own ideas of what replaces what, and
//! refuses what FRR refuses or what a right order of steps never asks for.

use std::collections::BTreeMap;

use agents_nos::frr::{FrrDelta, Observed, parse};

/// Lines by the lines that they are inside of.
#[derive(Default)]
pub(crate) struct Fake {
    sections: BTreeMap<Vec<String>, Vec<String>>,
    /// The section that the last line entered.
    inside: Vec<String>,
}

impl Fake {
    pub(crate) fn apply(&mut self, delta: &FrrDelta) {
        for block in &delta.blocks {
            for line in &block.lines {
                self.line(line.trim());
            }
            assert!(self.inside.is_empty(), "does not leave: {block:?}");
            self.check();
        }
    }

    /// Output of `show running-config`, read: neighbours are made before they are set.
    pub(crate) fn observe(&self) -> Observed {
        let mut text = String::new();
        for (section, lines) in &self.sections {
            for (depth, header) in section.iter().enumerate() {
                text += &format!("{}{header}\n", " ".repeat(depth));
            }
            let made = |line: &&String| {
                line.ends_with(" peer-group")
                    || line.contains(" interface ")
                    || line.contains("default")
            };
            let (first, then): (Vec<_>, Vec<_>) = lines.iter().partition(made);
            for line in first.into_iter().chain(then) {
                text += &format!("{}{line}\n", " ".repeat(section.len()));
            }
        }
        parse(&text)
    }

    fn line(&mut self, line: &str) {
        match line {
            "exit" | "exit-vrf" => return self.inside.clear(),
            "exit-address-family" => return self.inside.truncate(1),
            _ => {}
        }
        if line.starts_with("no ")
            && !line.starts_with("no bgp default")
            && !line.starts_with("no bgp ebgp")
        {
            return self.clear(&line[3..]);
        }
        let opens = ["vrf ", "router bgp ", "route-map ", "address-family "];
        if opens.iter().any(|start| line.starts_with(start)) {
            return self.enter(line);
        }
        self.set(line);
    }

    fn enter(&mut self, line: &str) {
        if let Some(number) = line.strip_prefix("route-map ").map(map_and_number) {
            // FRR changes the verdict of an entry in place, and keeps the rest.
            let had = self.sections.keys().find(|section| {
                section
                    .first()
                    .and_then(|l| l.strip_prefix("route-map "))
                    .map(map_and_number)
                    == Some(number.clone())
            });
            if let Some(had) = had.cloned() {
                let lines = self.sections.remove(&had).unwrap();
                self.sections.insert(vec![line.to_owned()], lines);
            }
        }
        self.inside.push(line.to_owned());
        self.sections.entry(self.inside.clone()).or_default();
    }

    fn set(&mut self, line: &str) {
        let lines = self.sections.entry(self.inside.clone()).or_default();
        let slot = slot(line);
        let merged = line == "redistribute connected"
            && lines
                .iter()
                .any(|l| l.starts_with("redistribute connected route-map"));
        assert!(!merged, "FRR keeps the route-map");
        let same_regex = |other: &String| {
            ["bgp as-path", "bgp extcommunity-list"]
                .iter()
                .any(|kind| line.starts_with(kind) && other.starts_with(kind))
                && as_path(other) == as_path(line)
                && self::slot(other) != slot
        };
        assert!(!lines.iter().any(same_regex), "FRR passes over {line}");
        lines.retain(|other| self::slot(other) != slot);
        lines.push(line.to_owned());
    }

    fn clear(&mut self, line: &str) {
        let within = |other: &String| *other == line || other.starts_with(&format!("{line} "));
        let before = self.count();
        if line.starts_with("router bgp ") {
            let tenant = line.split_once(" vrf ");
            let vni = tenant.and_then(|(_, vrf)| self.sections.get(&vec![format!("vrf {vrf}")]));
            assert!(vni.is_none_or(Vec::is_empty), "Please unconfigure l3vni");
            let others = self
                .sections
                .keys()
                .any(|s| s.first().is_some_and(|top| top.contains(" vrf ")));
            assert!(tenant.is_some() || !others, "Dependent VRF instances exist");
            self.sections
                .retain(|section, _| section.first().map(String::as_str) != Some(line));
        } else if line.starts_with("route-map ") {
            self.sections.remove(&vec![line.to_owned()]);
        } else if line.starts_with("neighbor ")
            && (line.ends_with(" interface") || line.ends_with(" peer-group"))
        {
            let peer = line.rsplit_once(' ').unwrap().0;
            let group = format!("peer-group {}", peer.trim_start_matches("neighbor "));
            let instance = self.inside[0].clone();
            for (section, lines) in &mut self.sections {
                if section.first() == Some(&instance) {
                    assert!(
                        !lines.iter().any(|l| l.ends_with(&group)),
                        "{line}: has members"
                    );
                    lines.retain(|l| !l.starts_with(&format!("{peer} ")));
                }
            }
        } else {
            let lines = self.sections.entry(self.inside.clone()).or_default();
            lines.retain(|other| !within(other));
        }
        assert!(self.count() < before, "there is no {line}");
    }

    fn count(&self) -> usize {
        self.sections.len() + self.sections.values().map(Vec::len).sum::<usize>()
    }

    /// After every step: whatever is used is there.
    fn check(&self) {
        let maps: Vec<String> = self.sections.keys().flatten().cloned().collect();
        for (section, lines) in &self.sections {
            for line in lines {
                let words: Vec<&str> = line.split(' ').collect();
                if let Some(at) = words.iter().position(|word| *word == "route-map") {
                    let used = format!("route-map {} ", words[at + 1]);
                    assert!(
                        maps.iter().any(|m| m.starts_with(&used)),
                        "{section:?} {line}"
                    );
                }
                if let [_, _, "interface", "peer-group", group] = words[..] {
                    let made = format!("neighbor {group} peer-group");
                    assert!(lines.contains(&made), "{section:?} {line}");
                }
            }
        }
    }
}

fn map_and_number(rest: &str) -> (String, String) {
    let words: Vec<&str> = rest.split(' ').collect();
    (words[0].to_owned(), words[2].to_owned())
}

/// List and expression of a line of a list of expressions.
fn as_path(line: &str) -> (String, String) {
    let words: Vec<&str> = line.split(' ').collect();
    (words[3].to_owned(), words[7].to_owned())
}

/// The part of a line that a later one replaces it by.
fn slot(line: &str) -> String {
    let words: Vec<&str> = line.trim_start_matches("no ").split(' ').collect();
    match words[..] {
        [ip, "prefix-list", list, "seq", number, ..] => format!("{ip} {list} {number}"),
        ["bgp", "as-path", "access-list", list, "seq", number, ..] => format!("{list} {number}"),
        ["bgp", "extcommunity-list", _, list, "seq", number, ..] => {
            format!("ext {list} {number}")
        }
        ["neighbor", peer, "route-map", _, way] => format!("{peer} route-map {way}"),
        ["neighbor", peer, what, ..] => format!("{peer} {what}"),
        ["match", ip, "address", ..] => format!("match {ip} address"),
        ["match", "evpn", what, ..] => format!("match evpn {what}"),
        ["bgp", "bestpath", ..] | ["advertise", ..] => line.to_owned(),
        [first, second, ..] => format!("{first} {second}"),
        _ => words[0].to_owned(),
    }
}
