use std::collections::BTreeMap;

use crate::rule::{Action, Direction, Rule, RuleSet};

/// Rules in a row with the same action and direction.
#[derive(Clone, Debug)]
pub(crate) struct Layer<'a> {
    /// Name of its chain, and the beginning of its maps' names.
    pub(crate) name: String,
    pub(crate) action: Action,
    pub(crate) direction: Direction,
    pub(crate) rules: Vec<&'a Rule>,
    /// `true` for a layer that logs the rules of the next one, and does not count them again.
    pub(crate) is_extra: bool,
    /// `true` for a layer of rules whose destinations are names.
    pub(crate) has_names: bool,
}

/// The layers in the order of their evaluation.
pub(crate) fn layers<'a>(rules: &'a RuleSet, epoch: &str) -> Vec<Layer<'a>> {
    let mut found = operator_layers(&rules.operator);
    for direction in [Direction::Ingress, Direction::Egress, Direction::Any] {
        for has_names in [false, true] {
            let of =
                |rule: &&Rule| rule.direction == direction && rule.names.is_empty() != has_names;
            let accepting: Vec<&Rule> = rules.tenant.iter().filter(of).collect();
            if !accepting.is_empty() {
                let suffix = if has_names { "-names" } else { "" };
                let name = format!("{}{suffix}", tenant(direction));
                push(&mut found, &name, Action::Accept, direction, accepting);
            }
        }
    }
    for layer in &mut found {
        layer.name = format!("{}.{epoch}", layer.name);
    }
    found
}

/// Name of the layer of the tenant's rules of a direction.
pub(super) fn tenant_name(direction: Direction, epoch: &str) -> String {
    format!("{}.{epoch}", tenant(direction))
}

fn tenant(direction: Direction) -> String {
    format!("tenant-{}", direction.name())
}

fn operator_layers(rules: &[Rule]) -> Vec<Layer<'_>> {
    let mut found = Vec::new();
    let mut numbers: BTreeMap<(Action, Direction), usize> = BTreeMap::new();
    let alike = |a: &Rule, b: &Rule| (a.action, a.direction) == (b.action, b.direction);
    for run in rules.chunk_by(alike) {
        let Some(Rule {
            action, direction, ..
        }) = run.first()
        else {
            continue;
        };
        let number = numbers.entry((*action, *direction)).or_default();
        let name = format!("operator-{}-{}-{number}", action.name(), direction.name());
        *number += 1;
        push(&mut found, &name, *action, *direction, run.iter().collect());
    }
    found
}

/// Adds a layer, after one that logs those of its rules that ask for it.
fn push<'a>(
    layers: &mut Vec<Layer<'a>>,
    name: &str,
    action: Action,
    direction: Direction,
    rules: Vec<&'a Rule>,
) {
    let logged: Vec<&Rule> = rules.iter().copied().filter(|rule| rule.log).collect();
    if action != Action::Log && !logged.is_empty() {
        layers.push(Layer {
            name: format!("{name}-log"),
            action: Action::Log,
            direction,
            has_names: logged.iter().any(|rule| !rule.names.is_empty()),
            rules: logged,
            is_extra: true,
        });
    }
    layers.push(Layer {
        name: name.to_owned(),
        action,
        direction,
        has_names: rules.iter().any(|rule| !rule.names.is_empty()),
        rules,
        is_extra: false,
    });
}
