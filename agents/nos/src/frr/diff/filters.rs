//! Steps of prefix lists, AS-path lists and route-maps.

use std::collections::BTreeMap;

use super::Plan;
use crate::frr::model::{
    Action, AsPathKey, AsPathRule, ObjectName, PrefixEntry, PrefixListKey, RouteMapEntry,
    RouteMapKey,
};
use crate::frr::object::FrrObject;
use crate::frr::render::{as_path_line, closing_line, community_line, prefix_line};
use crate::frr::settings::{self, changes};

/// Most lines of one step, so that a step always fits into one command.
const LINES_MAX: usize = 200;

impl Plan<'_> {
    /// Lists first, then the route-maps that use them.
    pub(super) fn filters_come(&mut self) {
        self.as_paths_come();
        self.communities_come();
        for key in self.new.closed.difference(&self.old.closed) {
            self.push(list_object(key), vec![closing_line(key)]);
        }
        self.prefixes_come();
        for (key, entry) in &self.new.route_maps {
            let lines = entry_changes(key, self.old.route_maps.get(key), entry);
            self.push(FrrObject::RouteMap(key.map.clone()), lines);
        }
    }

    fn prefixes_come(&mut self) {
        let mut coming = self.new.prefixes.difference(&self.old.prefixes).peekable();
        if coming.peek().is_none() {
            return;
        }
        // Numbers of the new entries must differ from each other too.
        let mut numbers = self.observed.numbers.clone();
        let lines = by_list(coming, |entry| {
            let sequence = numbers.free(entry);
            numbers.note(entry, sequence);
            vec![prefix_line(entry, sequence)]
        });
        self.push_lists(lines);
    }

    /// Route-maps first, then the lists that they used.
    pub(super) fn filters_leave(&mut self) {
        for (key, entry) in &self.old.route_maps {
            if !self.new.route_maps.contains_key(key) {
                let line = format!("no {}", header(key, entry.action));
                self.push(FrrObject::RouteMap(key.map.clone()), vec![line]);
            }
        }
        let leaving = self.old.prefixes.difference(&self.new.prefixes);
        let lines = by_list(leaving, |entry| {
            let (ip, list) = (entry.key().ip(), &entry.list);
            self.observed
                .numbers
                .of(entry)
                .map(|sequence| format!("no {ip} prefix-list {list} seq {sequence}"))
                .collect()
        });
        self.push_lists(lines);
        for key in self.old.closed.difference(&self.new.closed) {
            let (ip, list, last) = (key.ip(), &key.list, PrefixListKey::LAST);
            let line = format!("no {ip} prefix-list {list} seq {last}");
            self.push(list_object(key), vec![line]);
        }
        for (key, rule) in &self.old.as_paths {
            if !self.new.as_paths.contains_key(key) && !self.moves(key, rule) {
                let line = format!("no {}", as_path_line(key, rule));
                self.push(FrrObject::AsPathList(key.list.clone()), vec![line]);
            }
        }
        self.communities_leave();
    }

    /// An entry that changes leaves first, because FRR finds one by its expression. Meanwhile the
    /// list permits less.
    fn communities_come(&mut self) {
        let stays = |list: &ObjectName| self.new.communities.keys().any(|key| key.list == *list);
        let mut changes = Vec::new();
        for (key, rule) in &self.old.communities {
            if self.new.communities.get(key) != Some(rule) && stays(&key.list) {
                changes.push((key, format!("no {}", community_line(key, rule))));
            }
        }
        for (key, rule) in &self.new.communities {
            if self.old.communities.get(key) != Some(rule) {
                changes.push((key, community_line(key, rule)));
            }
        }
        for (key, line) in changes {
            self.push(FrrObject::CommunityList(key.list.clone()), vec![line]);
        }
    }

    fn communities_leave(&mut self) {
        for (key, rule) in &self.old.communities {
            if !self
                .new
                .communities
                .keys()
                .any(|kept| kept.list == key.list)
            {
                let line = format!("no {}", community_line(key, rule));
                self.push(FrrObject::CommunityList(key.list.clone()), vec![line]);
            }
        }
    }

    /// FRR finds a rule by its expression: it passes over one that its list has already, without a
    /// word, and deletes the first that has the expression, whatever its number and verdict. An
    /// expression that moves to another number therefore goes before it comes.
    fn as_paths_come(&mut self) {
        for (key, rule) in &self.old.as_paths {
            if self.new.as_paths.get(key) != Some(rule) && self.moves(key, rule) {
                let line = format!("no {}", as_path_line(key, rule));
                self.push(FrrObject::AsPathList(key.list.clone()), vec![line]);
            }
        }
        for (key, rule) in &self.new.as_paths {
            if self.old.as_paths.get(key) != Some(rule) {
                let object = FrrObject::AsPathList(key.list.clone());
                self.push(object, vec![as_path_line(key, rule)]);
            }
        }
    }

    /// `true` if the rule's expression is desired in the same list under another number.
    fn moves(&self, key: &AsPathKey, rule: &AsPathRule) -> bool {
        let first = AsPathKey {
            list: key.list.clone(),
            sequence: 0,
        };
        self.new
            .as_paths
            .range(first..)
            .take_while(|(other, _)| other.list == key.list)
            .any(|(other, wanted)| other != key && wanted.regex == rule.regex)
    }

    fn push_lists(&mut self, lists: BTreeMap<FrrObject, Vec<String>>) {
        for (object, lines) in lists {
            for some in lines.chunks(LINES_MAX) {
                self.push(object.clone(), some.to_vec());
            }
        }
    }
}

fn by_list<'e>(
    entries: impl Iterator<Item = &'e PrefixEntry>,
    mut lines: impl FnMut(&PrefixEntry) -> Vec<String>,
) -> BTreeMap<FrrObject, Vec<String>> {
    let mut lists: BTreeMap<FrrObject, Vec<String>> = BTreeMap::new();
    for entry in entries {
        let object = list_object(&entry.key());
        lists.entry(object).or_default().extend(lines(entry));
    }
    lists
}

fn list_object(key: &PrefixListKey) -> FrrObject {
    let list = key.list.clone();
    if key.ipv6 {
        FrrObject::Ipv6PrefixList(list)
    } else {
        FrrObject::PrefixList(list)
    }
}

/// Changes of an entry. One that is not yet complete denies: FRR knows an entry without conditions
/// from the moment it is entered, and it would permit everything.
fn entry_changes(
    key: &RouteMapKey,
    old: Option<&RouteMapEntry>,
    new: &RouteMapEntry,
) -> Vec<String> {
    if old == Some(new) {
        return Vec::new();
    }
    let before = old.map(settings::route_map).unwrap_or_default();
    let permits = |entry: &RouteMapEntry| entry.action == Action::Permit;
    let meanwhile = if old.is_some_and(permits) {
        new.action
    } else {
        Action::Deny
    };
    let mut lines = vec![header(key, meanwhile)];
    let changed = changes(&before, &settings::route_map(new));
    lines.extend(changed.into_iter().map(|line| format!(" {line}")));
    lines.push("exit".to_owned());
    if new.action != meanwhile {
        lines.extend([header(key, new.action), "exit".to_owned()]);
    }
    lines
}

fn header(key: &RouteMapKey, action: Action) -> String {
    format!("route-map {} {action} {}", key.map, key.sequence)
}
