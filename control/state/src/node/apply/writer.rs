//! The project that changes a node.

use std::collections::{BTreeMap, BTreeSet};

use proto_errors::{Error, ErrorCode};
use proto_types::ProjectId;

use crate::machine::entity::Machine;
use crate::node::entity::{JsonFields, NodeContent, NodeRecord};
use crate::reply::CheckResult;

/// Refuses a change by a project that has nothing to do with the machine, one by its user of fields that
/// outlive the use, which the next user would find, and one by its owner of the instance of a lessee.
pub(super) fn check_writer(
    machine: &Machine,
    project: Option<ProjectId>,
    before: &NodeContent,
    after: &NodeContent,
) -> CheckResult {
    let Some(user) = project else {
        return Ok(());
    };
    if machine.tenure.owner == Some(user) {
        return check_owner(machine, before, after);
    }
    let id = machine.id;
    let is_lessee = machine.tenure.lessee == Some(user);
    // Once it is given back, its addresses are the project's for a while, and its node is not.
    let uses = machine.is_held_by(user) && !machine.is_leaving();
    if !is_lessee && !uses {
        return Err(Error::not_found("machine", id));
    }
    if lasting(before, is_lessee) == lasting(after, is_lessee) {
        return Ok(());
    }
    let message = format!(
        "project \"{user}\" uses machine \"{id}\" and does not own it: of its node it changes the \
         instance and additional fields alone"
    );
    let hint = "its owner or an administrator of the site changes the other fields";
    let error = Error::new(ErrorCode::TenureRefused, message).object("machine", id);
    Err(error.hint(hint))
}

/// Refuses a change of the instance by the owner of a leased machine. What it says there is installed by the
/// lessee: a configuration drive with the owner's keys, or its network, would be in the lessee's system.
fn check_owner(machine: &Machine, before: &NodeContent, after: &NodeContent) -> CheckResult {
    if machine.tenure.lessee.is_none() || before.instance() == after.instance() {
        return Ok(());
    }
    let id = machine.id;
    let message =
        format!("machine \"{id}\" is leased: its lessee alone changes the instance of its node");
    let hint = format!("withdraw the lease first: metalmesh machine lease withdraw {id}");
    let error = Error::new(ErrorCode::TenureRefused, message).object("machine", id);
    Err(error.hint(hint))
}

/// The fields that the user of a machine does not change. A lessee also withholds it from others, which
/// has no effect beyond its owner.
fn lasting(content: &NodeContent, is_lessee: bool) -> NodeContent {
    let maintenance = content.maintenance.as_ref();
    NodeContent {
        extra: JsonFields::new(),
        stage: None,
        maintenance: maintenance.filter(|_| !is_lessee).cloned(),
        ..content.without_instance()
    }
}

/// `true` if a project that does not own the machine changes its node.
pub(super) fn is_by_user(machine: &Machine, project: Option<ProjectId>) -> bool {
    project.is_some_and(|project| machine.tenure.owner != Some(project))
}

/// The values of `extra` that come back after the use, once this change is made.
pub(super) fn replaced_extra(
    before: &NodeRecord,
    extra: &JsonFields,
    is_by_user: bool,
) -> BTreeMap<String, Option<String>> {
    let mut replaced = before.replaced_extra.clone();
    let known = &before.content.extra;
    let names: BTreeSet<&String> = known.keys().chain(extra.keys()).collect();
    for name in names {
        let (old, new) = (known.get(name), extra.get(name));
        if old == new {
            continue;
        }
        if !is_by_user {
            // The word of the owner or the site stays.
            replaced.remove(name);
            continue;
        }
        let first = replaced.entry(name.clone());
        let first = first.or_insert_with(|| old.cloned());
        if first.as_ref() == new {
            replaced.remove(name);
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use proto_types::MachineId;
    use uuid::Uuid;

    use super::*;
    use crate::meta::Meta;

    fn fields(all: &[(&str, &str)]) -> JsonFields {
        let pairs = all.iter();
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        pairs.collect()
    }

    /// A change of `extra`, `true` if its user makes it.
    type ExtraChange = (bool, &'static [(&'static str, &'static str)]);

    /// A field whose value of before comes back, and that value.
    type Returning = (&'static str, Option<&'static str>);

    #[test]
    fn values_of_before_the_use_come_back() {
        let cases: [(&[ExtraChange], &[Returning]); 7] = [
            (&[(true, &[("a", "1")])], &[]),
            (&[(true, &[("a", "2")])], &[("a", Some("1"))]),
            (&[(true, &[])], &[("a", Some("1"))]),
            (
                &[(true, &[("a", "2"), ("b", "3")]), (true, &[("a", "4")])],
                &[("a", Some("1"))],
            ),
            (&[(true, &[("a", "1"), ("b", "3")])], &[("b", None)]),
            // Back to the value of before.
            (&[(true, &[("a", "2")]), (true, &[("a", "1")])], &[]),
            // The owner has the last word.
            (&[(true, &[("a", "2")]), (false, &[("a", "5")])], &[]),
        ];
        for (changes, expected) in cases {
            let mut record = NodeRecord {
                machine: MachineId::new(Uuid::nil()),
                meta: Meta::default(),
                alias: None,
                content: NodeContent {
                    extra: fields(&[("a", "1")]),
                    ..NodeContent::default()
                },
                replaced_extra: BTreeMap::new(),
            };
            for (is_by_user, extra) in changes {
                let extra = fields(extra);
                record.replaced_extra = replaced_extra(&record, &extra, *is_by_user);
                record.content.extra = extra;
            }
            let expected = expected.iter();
            let expected =
                expected.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
            let expected: BTreeMap<String, Option<String>> = expected.collect();
            assert_eq!(record.replaced_extra, expected, "{changes:?}");
        }
    }
}
