//! The order of desired states: Raft term, then generation.

use prost::Message;
use strum::IntoStaticStr;

use crate::cache::{CacheError, LastGood};

/// Position of a desired state: a later term or, within a term, a later generation is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateFence {
    // The derived order compares the fields in this order.
    /// Raft term of the leader that sent the state.
    pub term: u64,
    /// Generation of the state within the term.
    pub generation: u64,
}

/// Desired state with a fence: an older one is never acted on.
pub trait Fenced: Message + Default + Clone + PartialEq + Send + 'static {
    /// Term and generation.
    fn fence(&self) -> StateFence;
    /// The same content under another fence, without a signature.
    #[must_use]
    fn fenced(self, fence: StateFence) -> Self;
    /// Loads the state of a cache.
    ///
    /// # Errors
    /// See [`LastGood::load`].
    fn load(cache: &LastGood) -> Result<Option<Self>, CacheError>;
    /// Stores a message, as received, in a cache.
    ///
    /// # Errors
    /// See [`LastGood::store`].
    fn store(cache: &LastGood, message: &[u8]) -> Result<(), CacheError>;
}

macro_rules! fenced {
    ($($name:ty),*) => {$(
        impl Fenced for $name {
            fn fence(&self) -> StateFence {
                StateFence { term: self.term, generation: self.generation }
            }
            fn fenced(self, fence: StateFence) -> Self {
                let StateFence { term, generation } = fence;
                Self { term, generation, seal: None, ..self }
            }
            fn load(cache: &LastGood) -> Result<Option<Self>, CacheError> {
                cache.load()
            }
            fn store(cache: &LastGood, message: &[u8]) -> Result<(), CacheError> {
                cache.store::<Self>(message)
            }
        }
    )*};
}

fenced!(
    proto_mesh::SwitchDesired,
    proto_mesh::BmcDesired,
    proto_mesh::BootDesired,
    proto_mesh::FirewallDesired
);

/// States that are never cached, and have no signature.
macro_rules! fenced_without_cache {
    ($($name:ty),*) => {$(
        impl Fenced for $name {
            fn fence(&self) -> StateFence {
                StateFence { term: self.term, generation: self.generation }
            }
            fn fenced(self, fence: StateFence) -> Self {
                let StateFence { term, generation } = fence;
                Self { term, generation, ..self }
            }
            fn load(_cache: &LastGood) -> Result<Option<Self>, CacheError> {
                Ok(None)
            }
            fn store(_cache: &LastGood, _message: &[u8]) -> Result<(), CacheError> {
                Ok(())
            }
        }
    )*};
}

// Orders of a machine: hammer has no disk of its own, and each boot starts anew. The release of an
// agent: it replaces nothing without control.
fenced_without_cache!(proto_mesh::MachineOrder, proto_mesh::UpdateDesired);

/// The decision about a state that arrived.
#[derive(Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Verdict {
    /// The content is new: act on it.
    News,
    /// The known content under a newer fence, after a new session or a change of leader.
    Repeated,
    /// Older than the newest state seen: drop it.
    Stale,
}

impl Verdict {
    /// Compares a state with the newest one seen.
    pub(crate) fn of<M: Fenced>(newest: Option<&M>, next: &M) -> Self {
        let fence = next.fence();
        match newest {
            Some(old) if fence < old.fence() => Self::Stale,
            Some(old) if old.clone().fenced(fence) == *next => Self::Repeated,
            // Other content under the same fence as well: the last one that control sent counts.
            _ => Self::News,
        }
    }

    /// The verdict's name in metrics.
    pub(crate) fn as_str(&self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use proto_mesh::MachineOrder;
    use proto_mesh::machine_order::{Hold, Order};

    use super::*;

    fn order(term: u64, generation: u64, reason: &str) -> MachineOrder {
        let order = Some(Order::Hold(Hold {
            reason: reason.to_owned(),
        }));
        MachineOrder {
            term,
            generation,
            order,
            ..MachineOrder::default()
        }
    }

    #[test]
    fn fences() {
        let seen = order(3, 10, "a");
        for (next, verdict) in [
            (order(3, 11, "b"), Verdict::News),
            (order(3, 10, "b"), Verdict::News),
            (order(4, 1, "b"), Verdict::News),
            (order(3, 12, "a"), Verdict::Repeated),
            (order(3, 10, "a"), Verdict::Repeated),
            (order(3, 9, "b"), Verdict::Stale),
            (order(2, 99, "b"), Verdict::Stale),
        ] {
            assert_eq!(Verdict::of(Some(&seen), &next), verdict, "{next:?}");
        }
        assert_eq!(Verdict::of(None, &seen), Verdict::News);
    }

    #[test]
    fn metric_names_do_not_change() {
        let all = [Verdict::News, Verdict::Repeated, Verdict::Stale];
        let names = all.map(|verdict| verdict.as_str());
        assert_eq!(names, ["news", "repeated", "stale"]);
    }
}
