//! Sample objects, by which policies are compared.

use strum::IntoStaticStr;

use super::PersonaProject;
use crate::registered::RuleSubject;
use crate::target::PolicyTarget;

/// The projects that an object belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ObjectSituation {
    /// A node with an owner and a lessee.
    OwnedAndLeased,
    /// An object with an owner.
    Owned,
    /// A node with a lessee and without an owner.
    Leased,
    /// An object without either: nobody's.
    Unowned,
    /// The call is about no object.
    NoObject,
}

impl ObjectSituation {
    /// The situations of objects that a rule may be asked about.
    #[must_use]
    pub const fn of(subject: RuleSubject) -> &'static [Self] {
        match subject {
            RuleSubject::Node => &[
                Self::OwnedAndLeased,
                Self::Owned,
                Self::Leased,
                Self::Unowned,
            ],
            RuleSubject::Allocation | RuleSubject::Runbook => &[Self::Owned, Self::Unowned],
            RuleSubject::OwnProject
            | RuleSubject::EveryProject
            | RuleSubject::Secrets
            | RuleSubject::Ramdisk => &[Self::NoObject],
            RuleSubject::Part => &[],
        }
    }

    /// The object as rules see it.
    #[must_use]
    pub fn target(self, subject: RuleSubject) -> PolicyTarget<'static> {
        let owner = self.has(PersonaProject::Owner);
        let lessee = self.has(PersonaProject::Lessee);
        match subject {
            RuleSubject::Node => PolicyTarget::node(owner, lessee),
            RuleSubject::Allocation => PolicyTarget::allocation(owner),
            RuleSubject::Runbook => PolicyTarget::runbook(owner),
            RuleSubject::OwnProject
            | RuleSubject::EveryProject
            | RuleSubject::Secrets
            | RuleSubject::Ramdisk
            | RuleSubject::Part => PolicyTarget::none(),
        }
    }

    /// `true` if the object belongs to the project in one way or the other.
    #[must_use]
    pub fn involves(self, project: PersonaProject) -> bool {
        self.has(project).is_some()
    }

    fn has(self, project: PersonaProject) -> Option<&'static str> {
        let is_set = match project {
            PersonaProject::Owner => matches!(self, Self::OwnedAndLeased | Self::Owned),
            PersonaProject::Lessee => matches!(self, Self::OwnedAndLeased | Self::Leased),
            PersonaProject::Other => false,
        };
        is_set.then(|| project.id())
    }
}
