use std::collections::BTreeSet;

use proto_types::Asn;

use super::bgp::checked_asn;
use super::error::ModelError;

/// An as-path list: it permits AS paths that have one of the origins and no other AS number.
///
/// A machine hangs on two leaves. With such a list on its import it cannot pass the routes of one
/// leaf on to the other, and never becomes a transit between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsPathList {
    origins: BTreeSet<Asn>,
}

impl AsPathList {
    /// Checks the origins.
    ///
    /// # Errors
    /// When there is none, or one is reserved.
    pub fn new(origins: impl IntoIterator<Item = Asn>) -> Result<Self, ModelError> {
        let origins = origins
            .into_iter()
            .map(checked_asn)
            .collect::<Result<BTreeSet<_>, _>>()?;
        if origins.is_empty() {
            return Err(ModelError::NoOrigin);
        }
        Ok(Self { origins })
    }

    /// The origins.
    #[must_use]
    pub fn origins(&self) -> &BTreeSet<Asn> {
        &self.origins
    }
}
