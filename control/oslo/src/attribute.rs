//! The attributes that checks compare, by the names that policy files call them.

use strum::{EnumCount, EnumString, IntoStaticStr, VariantArray};

/// A text of the caller's token, or of the deployment, that a check can compare.
///
/// Checks that only read a target find them there too, as in Ironic: `user_id:%(user_id)s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CallerAttribute {
    /// Id of the user.
    UserId,
    /// Id of the user's domain.
    UserDomainId,
    /// `all` for a token of the whole system; `system` is another name of it.
    #[strum(to_string = "system_scope", serialize = "system")]
    SystemScope,
    /// Id of the domain that the token is for.
    DomainId,
    /// Id of the project that the token is for.
    ProjectId,
    /// Name of that project.
    ProjectName,
    /// Id of that project's domain.
    ProjectDomainId,
    /// `True` if the project may administer the cloud; so it is unless the deployment names one.
    IsAdminProject,
    /// `True` for the calls that need no token.
    IsPublicApi,
    /// Id of the user of a service that passes the call on.
    ServiceUserId,
    /// Id of that user's domain.
    ServiceUserDomainId,
    /// Id of the project of a service that passes the call on.
    ServiceProjectId,
    /// Id of that project's domain.
    ServiceProjectDomainId,
    /// Name of the project whose services have rights of the system. Absent means that no project
    /// has.
    #[strum(to_string = "config.service_project_name")]
    ServiceProjectName,
}

/// A text of the object that a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, EnumString, IntoStaticStr, VariantArray)]
pub enum ObjectAttribute {
    /// Id of the project that owns the node.
    #[strum(to_string = "node.owner")]
    NodeOwner,
    /// Id of the project that the node is leased to.
    #[strum(to_string = "node.lessee")]
    NodeLessee,
    /// Id of the project that an allocation belongs to.
    #[strum(to_string = "allocation.owner")]
    AllocationOwner,
    /// Id of the project that a runbook belongs to.
    #[strum(to_string = "runbook.owner")]
    RunbookOwner,
}

impl CallerAttribute {
    /// Name in policy files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl ObjectAttribute {
    /// Name in policy files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The names of all attributes, for errors.
pub(crate) fn known_names() -> String {
    let caller = CallerAttribute::VARIANTS.iter().map(|known| known.name());
    let names: Vec<&str> = caller.chain(["roles", "service_roles"]).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use strum::{EnumCount as _, VariantArray as _};

    use super::{CallerAttribute, ObjectAttribute};

    #[test]
    fn names_are_those_of_policy_files() {
        let callers: Vec<&str> = CallerAttribute::VARIANTS
            .iter()
            .map(|known| known.name())
            .collect();
        assert_eq!(
            callers,
            [
                "user_id",
                "user_domain_id",
                "system_scope",
                "domain_id",
                "project_id",
                "project_name",
                "project_domain_id",
                "is_admin_project",
                "is_public_api",
                "service_user_id",
                "service_user_domain_id",
                "service_project_id",
                "service_project_domain_id",
                "config.service_project_name",
            ]
        );
        assert_eq!(callers.len(), CallerAttribute::COUNT);
        assert_eq!("system".parse(), Ok(CallerAttribute::SystemScope));
        for known in CallerAttribute::VARIANTS {
            assert_eq!(known.name().parse(), Ok(*known));
        }
        let objects: Vec<&str> = ObjectAttribute::VARIANTS
            .iter()
            .map(|known| known.name())
            .collect();
        assert_eq!(
            objects,
            [
                "node.owner",
                "node.lessee",
                "allocation.owner",
                "runbook.owner"
            ]
        );
        assert_eq!(objects.len(), ObjectAttribute::COUNT);
    }
}
