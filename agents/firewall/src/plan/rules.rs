use super::{Change, InstalledRule};
use crate::model::Chain;
use crate::netlink::{covers, encode_expressions};

/// Plans the rules of a chain: equal ones stay, in their order, so that their limits and their
/// place in the kernel stay too.
pub(super) fn plan_chain(
    name: &str,
    installed: &[InstalledRule],
    desired: &Chain,
    changes: &mut Vec<Change>,
    removed: &mut Vec<Change>,
) {
    let encoded: Vec<_> = desired
        .rules
        .iter()
        .map(|rule| encode_expressions(&rule.expressions))
        .collect();
    let mut kept: Vec<Option<usize>> = Vec::with_capacity(encoded.len());
    let mut next = 0;
    for rule in &encoded {
        let found = (next..installed.len()).find(|at| covers(&installed[*at].expressions, rule));
        next = found.map_or(next, |at| at + 1);
        kept.push(found);
    }
    for (index, rule) in desired.rules.iter().enumerate() {
        if kept[index].is_none() {
            let after = kept[index..].iter().flatten().next();
            changes.push(Change::AddRule {
                chain: name.to_owned(),
                before: after.map(|at| installed[*at].handle),
                rule: rule.clone(),
            });
        }
    }
    for (index, rule) in installed.iter().enumerate() {
        if !kept.contains(&Some(index)) {
            removed.push(Change::RemoveRule {
                chain: name.to_owned(),
                handle: rule.handle,
            });
        }
    }
}
