//! Limits on concurrent use, in total and per caller.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// A caller may hold one part in `SHARE` of the places that are free or its own. Above that it is
/// refused.
const SHARE: usize = 8;

/// Counted places: at most `max` in total and `each_max` per caller.
///
/// The bound of a caller shrinks with the free places: an eighth of them (the dynamic threshold of
/// Choudhury and Hahne). It takes many greedy callers, not a few, to leave nothing for a new one.
#[derive(Debug)]
pub struct Places<K: Ord> {
    max: usize,
    each_max: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K: Ord> {
    all: usize,
    by_caller: BTreeMap<K, usize>,
}

/// Places of one caller. Dropping it frees them.
#[derive(Debug)]
pub struct Place<K: Ord> {
    of: Arc<Places<K>>,
    caller: K,
    count: usize,
}

impl<K: Ord + Clone> Places<K> {
    /// `max` places in total, `each_max` per caller.
    pub fn new(max: usize, each_max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            each_max,
            taken: Mutex::new(Taken {
                all: 0,
                by_caller: BTreeMap::new(),
            }),
        })
    }

    /// `each_max` places per caller, for use where the total is bounded by something else.
    pub fn each(each_max: usize) -> Arc<Self> {
        Self::new(usize::MAX / 2, each_max)
    }

    /// Takes one place. `None` means that this caller may take no further one now.
    pub fn take(self: &Arc<Self>, caller: K) -> Option<Place<K>> {
        let mut place = self.none(caller);
        place.grow(1).then_some(place)
    }

    /// A guard without places, to be filled by [`Place::grow`].
    pub fn none(self: &Arc<Self>, caller: K) -> Place<K> {
        Place {
            of: Arc::clone(self),
            caller,
            count: 0,
        }
    }

    /// Number of places taken.
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// Number of places that this caller holds.
    pub fn taken_by(&self, caller: &K) -> usize {
        self.lock().by_caller.get(caller).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock()
    }
}

impl<K: Ord + Clone> Place<K> {
    /// Takes `count` further places, all or none. `false` means that the caller may not take them now.
    pub fn grow(&mut self, count: usize) -> bool {
        if count == 0 {
            return true;
        }
        let mut taken = self.of.lock();
        let its = taken.by_caller.get(&self.caller).copied().unwrap_or(0);
        let free = self.of.max.saturating_sub(taken.all);
        // Rounded up, so that the last free places can be taken at all.
        let fair = (its + free).div_ceil(SHARE);
        if count > free || its + count > self.of.each_max.min(fair) {
            return false;
        }
        taken.all += count;
        taken.by_caller.insert(self.caller.clone(), its + count);
        drop(taken);
        self.count += count;
        true
    }
}

impl<K: Ord> Drop for Place<K> {
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut taken = self.of.taken.lock();
        taken.all = taken.all.saturating_sub(self.count);
        if let Some(its) = taken.by_caller.get_mut(&self.caller) {
            *its = its.saturating_sub(self.count);
            // Entries without places would let the map grow with every caller ever seen.
            if *its == 0 {
                taken.by_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greedy(places: &Arc<Places<u32>>, caller: u32) -> Vec<Place<u32>> {
        std::iter::from_fn(|| places.take(caller)).collect()
    }

    #[test]
    fn one_caller_takes_its_bound_and_gives_it_back() {
        let places = Places::new(1000, 10);
        let taken = greedy(&places, 1);
        assert_eq!(
            (taken.len(), places.taken(), places.taken_by(&1)),
            (10, 10, 10)
        );
        assert!(places.take(2).is_some(), "another one has its own");
        drop(taken);
        assert_eq!(places.taken(), 0);
        assert!(places.lock().by_caller.is_empty());
        assert!(places.take(1).is_some());
    }

    #[test]
    fn many_greedy_callers_leave_a_place_to_a_new_one() {
        let places = Places::new(1000, 400);
        let mut taken = Vec::new();
        for caller in 0..40 {
            let its = greedy(&places, caller);
            assert!(
                !its.is_empty(),
                "caller {caller} of {} taken",
                places.taken()
            );
            taken.push(its);
        }
        assert!(places.taken() <= 1000);
        assert!(
            greedy(&places, 0).is_empty(),
            "it has more than its share by now"
        );
    }

    #[test]
    fn all_places_may_be_taken_and_no_more() {
        let places = Places::new(3, 3);
        let taken: Vec<_> = (0..3).map(|caller| places.take(caller).unwrap()).collect();
        assert!(places.take(9).is_none());
        drop(taken);
        assert!(places.take(9).is_some());
    }

    #[test]
    fn a_place_grows_by_many_or_not_at_all() {
        let places = Places::new(1000, 100);
        let mut bytes = places.none(1);
        assert!(bytes.grow(0) && bytes.grow(60) && !bytes.grow(41) && bytes.grow(40));
        assert_eq!(places.taken(), 100);
        drop(bytes);
        assert_eq!(places.taken(), 0);
    }
}
