//! Networks as a tree.

use std::collections::BTreeMap;

use proto_public::api::v2::Network;

use crate::output::TableRow;

/// Rows in the order of the tree. Children are indented below their parent.
pub(super) fn rows(networks: &[Network], wide: bool) -> Vec<Vec<String>> {
    let known = |id: &str| networks.iter().any(|network| network.id == id);
    let mut children: BTreeMap<Option<&str>, Vec<&Network>> = BTreeMap::new();
    for network in networks {
        // A child whose parent the caller may not see is shown as a root.
        let parent = network
            .parent_network
            .as_deref()
            .filter(|parent| known(parent));
        children.entry(parent).or_default().push(network);
    }
    let mut rows = Vec::new();
    branch(&children, None, "", wide, &mut rows);
    rows
}

fn branch(
    children: &BTreeMap<Option<&str>, Vec<&Network>>,
    parent: Option<&str>,
    indent: &str,
    wide: bool,
    rows: &mut Vec<Vec<String>>,
) {
    let Some(here) = children.get(&parent) else {
        return;
    };
    for (at, network) in here.iter().enumerate() {
        let last = at + 1 == here.len();
        let (mark, next) = match (parent.is_none(), last) {
            (true, _) => (String::new(), String::new()),
            (false, true) => (format!("{indent}\u{2514}\u{2500}"), format!("{indent}  ")),
            (false, false) => (
                format!("{indent}\u{251c}\u{2500}"),
                format!("{indent}\u{2502} "),
            ),
        };
        let mut cells = network.cells(wide);
        if let Some(first) = cells.first_mut() {
            first.insert_str(0, &mark);
        }
        rows.push(cells);
        // The recursion ends: a network that is its own ancestor is below no root.
        branch(children, Some(&network.id), &next, wide, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_shows_every_network_once() {
        let network = |id: &str, parent: Option<&str>| Network {
            id: id.into(),
            parent_network: parent.map(Into::into),
            ..Default::default()
        };
        let networks = [
            network("child-1", Some("super")),
            network("super", None),
            network("orphan", Some("unseen")),
            network("child-2", Some("super")),
        ];
        let rows = rows(&networks, false);
        let ids: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(
            ids,
            [
                "super",
                "\u{251c}\u{2500}child-1",
                "\u{2514}\u{2500}child-2",
                "orphan"
            ]
        );
    }
}
