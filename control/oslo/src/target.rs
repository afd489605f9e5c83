//! The object that a call is about, as rules see it.

use strum::EnumCount as _;

use crate::attribute::ObjectAttribute;

/// The attributes of an object, borrowed from it for one decision.
///
/// An empty text is an absent one, and an absent one equals nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicyTarget<'a> {
    values: [Option<&'a str>; ObjectAttribute::COUNT],
}

impl<'a> PolicyTarget<'a> {
    /// Calls that are about no object, such as those that list.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A node, and everything that belongs to it: ports, portgroups and volumes.
    #[must_use]
    pub fn node(owner: Option<&'a str>, lessee: Option<&'a str>) -> Self {
        Self::none()
            .with(ObjectAttribute::NodeOwner, owner)
            .with(ObjectAttribute::NodeLessee, lessee)
    }

    /// An allocation.
    #[must_use]
    pub fn allocation(owner: Option<&'a str>) -> Self {
        Self::none().with(ObjectAttribute::AllocationOwner, owner)
    }

    /// A runbook.
    #[must_use]
    pub fn runbook(owner: Option<&'a str>) -> Self {
        Self::none().with(ObjectAttribute::RunbookOwner, owner)
    }

    /// The same object with another value of an attribute.
    #[must_use]
    pub fn with(mut self, attribute: ObjectAttribute, value: Option<&'a str>) -> Self {
        if let Some(place) = self.values.get_mut(attribute as usize) {
            *place = value.filter(|value| !value.is_empty());
        }
        self
    }

    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, attribute: ObjectAttribute) -> Option<&'a str> {
        self.values.get(attribute as usize).copied().flatten()
    }
}
