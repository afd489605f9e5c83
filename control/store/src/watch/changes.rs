//! The changes of one command.

use std::any::Any;
use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The changes of one command, shared by all subscribers.
pub struct Changes<C> {
    list: Box<[C]>,
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl<C> Changes<C> {
    pub(super) fn new(list: Vec<C>) -> Self {
        Self {
            list: list.into(),
            derived: OnceLock::new(),
        }
    }

    /// The result of `make`, cached: the first caller computes it for all. The cache holds one
    /// type; callers with another type compute theirs each time.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl Fn(&[C]) -> T) -> Arc<T> {
        // Subscribers that ask meanwhile wait for the first one, instead of computing the same.
        let held = self.derived.get_or_init(|| Arc::new(make(&self.list)));
        Arc::clone(held)
            .downcast()
            .unwrap_or_else(|_| Arc::new(make(&self.list)))
    }
}

impl<C> Deref for Changes<C> {
    type Target = [C];
    fn deref(&self) -> &[C] {
        &self.list
    }
}

impl<C: Debug> Debug for Changes<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

impl<C: PartialEq> PartialEq for Changes<C> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl<C: Eq> Eq for Changes<C> {}
