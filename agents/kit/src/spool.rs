//! A spool of events for control in memory.

use std::collections::VecDeque;

/// A queue of the newest `max` events. Older ones are dropped and counted.
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

    /// Adds an event. A full spool drops its oldest.
    pub fn push(&mut self, event: E) {
        if self.events.len() >= self.max {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }

    /// The oldest event. Call [`EventSpool::pop`] once control has it.
    pub fn front(&self) -> Option<&E> {
        self.events.front()
    }

    /// Removes the oldest event.
    pub fn pop(&mut self) -> Option<E> {
        self.events.pop_front()
    }

    /// Number of waiting events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// `true` if no event waits.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Number of events dropped for want of room.
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
