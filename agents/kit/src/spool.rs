//! Events that wait for control, with the time they happened.

use std::collections::VecDeque;

/// Holds the newest `max` events; older ones are dropped and counted.
#[derive(Clone, Debug)]
pub struct EventSpool<E> {
    events: VecDeque<E>,
    max: usize,
    dropped: u64,
}

impl<E> EventSpool<E> {
    /// An empty spool of at most `max` events (at least one).
    pub fn new(max: usize) -> Self {
        Self {
            events: VecDeque::new(),
            max: max.max(1),
            dropped: 0,
        }
    }

    /// Adds an event; the oldest makes room.
    pub fn push(&mut self, event: E) {
        if self.events.len() >= self.max {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }

    /// The oldest event, to be sent; [`EventSpool::pop`] it once control has it.
    pub fn front(&self) -> Option<&E> {
        self.events.front()
    }

    /// Removes the oldest event.
    pub fn pop(&mut self) -> Option<E> {
        self.events.pop_front()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How many were dropped for want of room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut spool = EventSpool::new(2);
        for n in 1..=3 {
            spool.push(n);
        }
        assert_eq!(
            (spool.pop(), spool.pop(), spool.pop()),
            (Some(2), Some(3), None)
        );
        assert_eq!(spool.dropped(), 1);
    }
}
