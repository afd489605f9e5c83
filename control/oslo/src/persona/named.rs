//! Sample callers for what a file names: roles that no other sample has, projects, users.

use std::collections::BTreeSet;

use super::{Persona, PersonaProject, ROLES, personas};
use crate::attribute::CallerAttribute;
use crate::credentials::Credentials;
use crate::expression::SimpleCheck;
use crate::file::PolicyFile;

/// Roles and constants of one file that get sample callers.
const NAMED_MAX: usize = 16;

/// The sample callers for a file.
#[derive(Debug)]
pub(crate) struct FileSamples {
    pub(crate) personas: Vec<Persona>,
    /// First rule that names a role or a constant beyond the bound, which no sample caller has.
    pub(crate) first_without: Option<String>,
}

/// A role or a constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NamedSample {
    /// A role, in lower case.
    Role(String),
    /// Place of a caller's attribute in [`SAMPLED`], and its value.
    Value(usize, String),
}

/// Attributes whose constants get a sample caller.
const SAMPLED: [CallerAttribute; 6] = [
    CallerAttribute::UserId,
    CallerAttribute::UserDomainId,
    CallerAttribute::ProjectId,
    CallerAttribute::ProjectName,
    CallerAttribute::ProjectDomainId,
    CallerAttribute::DomainId,
];

/// The sample callers of every file, and those for what this one names.
pub(crate) fn samples_of(file: &PolicyFile) -> FileSamples {
    let mut found: BTreeSet<NamedSample> = BTreeSet::new();
    let mut first_without = None;
    for rule in file.rules() {
        for named in rule.check.checks().into_iter().filter_map(named) {
            if found.len() < NAMED_MAX {
                found.insert(named);
            } else if !found.contains(&named) && first_without.is_none() {
                first_without = Some(rule.name.clone());
            }
        }
    }
    let mut personas = personas();
    for named in found {
        match named {
            NamedSample::Role(role) => personas.extend(of_role(&role)),
            NamedSample::Value(place, value) => personas.extend(of_value(place, &value)),
        }
    }
    FileSamples {
        personas,
        first_without,
    }
}

/// The role or the constant that a check names, if other samples do not have it.
fn named(check: &SimpleCheck) -> Option<NamedSample> {
    let value = check.value();
    if value.contains('%') || value == "None" {
        return None;
    }
    if check.kind() == "role" {
        let role = value.to_lowercase();
        let is_usual = ROLES
            .iter()
            .any(|(_, roles)| roles.contains(&role.as_str()));
        return (!is_usual).then_some(NamedSample::Role(role));
    }
    let attribute = check.kind().parse::<CallerAttribute>().ok()?;
    let place = SAMPLED.iter().position(|sampled| *sampled == attribute)?;
    Some(NamedSample::Value(place, value.to_owned()))
}

/// Callers with that role alone: in the system, and in each project.
fn of_role(role: &str) -> Vec<Persona> {
    let mut all = vec![Persona {
        name: format!("{role}@system"),
        project: None,
        credentials: Credentials::system([role]),
    }];
    all.extend(PersonaProject::ALL.into_iter().map(|project| {
        Persona {
            name: format!("{role}@{}", project.name()),
            project: Some(project),
            credentials: Credentials::project(project.id(), [role])
                .with(CallerAttribute::ProjectName, project.name()),
        }
    }));
    all
}

/// An admin of another project with that attribute.
fn of_value(place: usize, value: &str) -> Option<Persona> {
    let attribute = *SAMPLED.get(place)?;
    let project = PersonaProject::Other;
    let (_, roles) = ROLES.first()?;
    Some(Persona {
        name: format!("{}={value}", attribute.name()),
        project: Some(project),
        credentials: Credentials::project(project.id(), roles.iter().copied())
            .with(CallerAttribute::ProjectName, project.name())
            .with(attribute, value),
    })
}
