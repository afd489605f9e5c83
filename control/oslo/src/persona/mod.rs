//! Sample callers, by which policies are compared.

mod named;
mod situation;

use crate::attribute::CallerAttribute;
use crate::credentials::Credentials;

pub(crate) use named::samples_of;
pub use situation::ObjectSituation;

/// A sample caller.
#[derive(Clone, Debug)]
pub struct Persona {
    /// Name in reports: `owner-admin`.
    pub name: String,
    /// Its project. `None` for callers of the system, and for services with rights of the system.
    pub project: Option<PersonaProject>,
    /// Its attributes.
    pub credentials: Credentials,
}

/// The project of a sample caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonaProject {
    /// The project that owns the objects that have an owner.
    Owner,
    /// The project that nodes with a lessee are leased to.
    Lessee,
    /// A project that has nothing to do with them.
    Other,
}

/// Roles by the strongest of them: each implies those behind it. A service has no other role, and
/// a token may have none that a rule knows.
const ROLES: [(&str, &[&str]); 6] = [
    ("admin", &["admin", "manager", "member", "reader"]),
    ("manager", &["manager", "member", "reader"]),
    ("member", &["member", "reader"]),
    ("reader", &["reader"]),
    ("service", &["service"]),
    ("none", &[]),
];
/// Name of the project whose services may have rights of the system.
const SERVICE_PROJECT: &str = "service";

impl PersonaProject {
    const ALL: [Self; 3] = [Self::Owner, Self::Lessee, Self::Other];

    /// Id of the project.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Owner => "project-owner",
            Self::Lessee => "project-lessee",
            Self::Other => "project-other",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Lessee => "lessee",
            Self::Other => "other",
        }
    }
}

/// The sample callers: each role of the system, of the owner, of the lessee and of another project,
/// and a service with rights of the system (`rbac_service_role_elevated_access`).
#[must_use]
pub fn personas() -> Vec<Persona> {
    let system = ROLES.iter().filter(|(_, roles)| !roles.is_empty());
    let mut all: Vec<Persona> = system
        .map(|(role, roles)| Persona {
            name: format!("system-{role}"),
            project: None,
            credentials: Credentials::system(roles.iter().copied()),
        })
        .collect();
    let elevated = Credentials::project("project-services", ["service"])
        .with(CallerAttribute::ProjectName, SERVICE_PROJECT)
        .with(CallerAttribute::ServiceProjectName, SERVICE_PROJECT);
    all.push(Persona {
        name: "elevated-service".to_owned(),
        project: None,
        credentials: elevated,
    });
    for project in PersonaProject::ALL {
        all.extend(ROLES.iter().map(|(role, roles)| {
            Persona {
                name: format!("{}-{role}", project.name()),
                project: Some(project),
                credentials: Credentials::project(project.id(), roles.iter().copied())
                    .with(CallerAttribute::ProjectName, project.name()),
            }
        }));
    }
    all
}
