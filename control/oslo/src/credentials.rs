//! The caller, as rules see it.

use strum::{EnumCount as _, IntoStaticStr};

use crate::attribute::CallerAttribute;

/// The scope of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TokenScope {
    /// The whole system.
    System,
    /// A domain.
    Domain,
    /// A project, or nothing.
    Project,
}

/// The attributes of a caller: made once for each token, read by every decision.
///
/// An empty text is an absent one.
#[derive(Clone, Debug)]
pub struct Credentials {
    roles: Vec<Box<str>>,
    /// The roles in lower case: checks of roles ignore the case.
    folded_roles: Vec<Box<str>>,
    service_roles: Vec<Box<str>>,
    values: [Option<Box<str>>; CallerAttribute::COUNT],
}

impl Credentials {
    /// A caller with these roles, without a scope.
    ///
    /// `is_admin_project` is `True`, as it is where no project was named as the administrators', and
    /// `is_public_api` is `False`, as it is for calls that need a token.
    #[must_use]
    pub fn new<'a>(roles: impl IntoIterator<Item = &'a str>) -> Self {
        let roles: Vec<Box<str>> = roles.into_iter().map(Box::from).collect();
        let folded_roles = roles
            .iter()
            .map(|role| role.to_lowercase().into())
            .collect();
        let bare = Self {
            roles,
            folded_roles,
            service_roles: Vec::new(),
            values: Default::default(),
        };
        bare.with(CallerAttribute::IsAdminProject, "True")
            .with(CallerAttribute::IsPublicApi, "False")
    }

    /// A caller with a token of the whole system.
    #[must_use]
    pub fn system<'a>(roles: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(roles).with(CallerAttribute::SystemScope, "all")
    }

    /// A caller with a token of one project.
    #[must_use]
    pub fn project<'a>(project: &str, roles: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(roles).with(CallerAttribute::ProjectId, project)
    }

    /// The same caller with another value of an attribute. Empty removes it.
    #[must_use]
    pub fn with(mut self, attribute: CallerAttribute, value: &str) -> Self {
        if let Some(place) = self.values.get_mut(attribute as usize) {
            *place = Some(value).filter(|value| !value.is_empty()).map(Box::from);
        }
        self
    }

    /// The same caller with the roles of a service that passes its call on.
    #[must_use]
    pub fn with_service_roles<'a>(mut self, roles: impl IntoIterator<Item = &'a str>) -> Self {
        self.service_roles = roles.into_iter().map(Box::from).collect();
        self
    }

    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, attribute: CallerAttribute) -> Option<&str> {
        self.values.get(attribute as usize)?.as_deref()
    }

    /// The roles, as the token spells them.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().map(AsRef::as_ref)
    }

    /// The roles of a service that passes the call on.
    pub fn service_roles(&self) -> impl Iterator<Item = &str> {
        self.service_roles.iter().map(AsRef::as_ref)
    }

    /// The roles in lower case.
    pub(crate) fn folded_roles(&self) -> impl Iterator<Item = &str> {
        self.folded_roles.iter().map(AsRef::as_ref)
    }

    /// The scope of the token, as rules that are limited to scopes see it.
    #[must_use]
    pub fn scope(&self) -> TokenScope {
        if self.get(CallerAttribute::SystemScope).is_some() {
            TokenScope::System
        } else if self.get(CallerAttribute::DomainId).is_some() {
            TokenScope::Domain
        } else {
            TokenScope::Project
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Credentials, TokenScope};
    use crate::attribute::CallerAttribute;

    #[test]
    fn scopes() {
        let domain = Credentials::new(["admin"]).with(CallerAttribute::DomainId, "d");
        for (caller, scope, name) in [
            (
                Credentials::system(["reader"]),
                TokenScope::System,
                "system",
            ),
            (
                Credentials::project("p", ["Member"]),
                TokenScope::Project,
                "project",
            ),
            (Credentials::new([]), TokenScope::Project, "project"),
            (domain, TokenScope::Domain, "domain"),
        ] {
            assert_eq!(caller.scope(), scope);
            assert_eq!(<&str>::from(caller.scope()), name);
        }
    }

    #[test]
    fn an_empty_value_is_an_absent_one() {
        let caller = Credentials::project("", ["Member"]);
        assert_eq!(caller.get(CallerAttribute::ProjectId), None);
        let named = caller.with(CallerAttribute::ProjectId, "p");
        assert_eq!(named.get(CallerAttribute::ProjectId), Some("p"));
        let removed = named.with(CallerAttribute::ProjectId, "");
        assert_eq!(removed.get(CallerAttribute::ProjectId), None);
        assert_eq!(removed.roles().collect::<Vec<_>>(), ["Member"]);
        assert_eq!(removed.folded_roles().collect::<Vec<_>>(), ["member"]);
    }
}
