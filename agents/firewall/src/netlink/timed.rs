//! Elements with timeouts: what the DNS proxy has learned.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::applying::following;
use super::attribute::{Attribute, find, parse};
use super::constants::{DATA_VALUE, ELEMENT_EXPIRATION, ELEMENT_TIMEOUT, LIST_ELEMENT, message};
use super::error::NetlinkError;
use super::kernel::{ERESTART, Kernel, is};
use super::message::{CREATE, DUMP, Message, batch};
use super::observe;
use crate::model::TABLE;

/// Elements in one transaction. More are sent as several.
const BATCH_MAX: usize = 256;
/// Attempts while somebody else changes rules.
const ATTEMPTS_MAX: usize = 20;

/// An element of a set with timeouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedElement {
    /// Name of the set.
    pub set: String,
    /// Key.
    pub key: Vec<u8>,
    /// Time until the kernel removes it.
    pub lifetime: Duration,
}

impl Kernel {
    /// Adds elements, or gives those that exist a new lifetime. Returns the generations that this
    /// has made: whoever compares the table by generation need not compare it for them.
    ///
    /// # Errors
    /// The kernel refused it, for instance because a set does not exist.
    pub fn put_timed(&self, elements: &[TimedElement]) -> Result<Vec<u32>, NetlinkError> {
        // An element that exists keeps its timeout when it is added again (before Linux 6.12), so it
        // is removed in the same transaction: a packet finds it before and after.
        let pair = |element: &TimedElement| {
            [
                element.message(message::DESTROY_ELEMENT, 0, false),
                element.message(message::NEW_ELEMENT, CREATE, true),
            ]
        };
        self.commit_timed(elements, &|part| part.iter().flat_map(pair).collect())
    }

    /// Removes elements. One that does not exist is no error.
    ///
    /// # Errors
    /// The kernel refused it.
    pub fn remove_timed(&self, elements: &[TimedElement]) -> Result<Vec<u32>, NetlinkError> {
        let one = |element: &TimedElement| element.message(message::DESTROY_ELEMENT, 0, false);
        self.commit_timed(elements, &|part| part.iter().map(one).collect())
    }

    /// The elements of a set with timeouts, with the rest of their lifetimes.
    ///
    /// # Errors
    /// The request failed, or there is no such set.
    pub fn timed(&self, set: &str) -> Result<Vec<TimedElement>, NetlinkError> {
        let which = vec![Attribute::text(1, TABLE), Attribute::text(2, set)];
        let action = format!("read the set {set}");
        let answers = self.request(message::GET_ELEMENT, DUMP, which, &action)?;
        let mut found = BTreeMap::new();
        for answer in answers
            .iter()
            .filter(|answer| is(answer, message::NEW_ELEMENT))
        {
            for (key, lifetime) in read(answer.attributes()) {
                found.insert(key, lifetime);
            }
        }
        let named = |(key, lifetime)| TimedElement {
            set: set.to_owned(),
            key,
            lifetime,
        };
        Ok(found.into_iter().map(named).collect())
    }

    fn commit_timed(
        &self,
        elements: &[TimedElement],
        make: &dyn Fn(&[TimedElement]) -> Vec<Message>,
    ) -> Result<Vec<u32>, NetlinkError> {
        let mut made = Vec::new();
        for part in elements.chunks(BATCH_MAX) {
            made.push(self.commit_messages(&make(part))?);
        }
        Ok(made)
    }

    /// Sends one transaction; returns the generation that it has made.
    fn commit_messages(&self, messages: &[Message]) -> Result<u32, NetlinkError> {
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        for _ in 0..ATTEMPTS_MAX {
            let generation = self.generation()?;
            let begin = self
                .sequence
                .fetch_add(count.saturating_add(1), Ordering::Relaxed);
            let sent = self.socket.send(&batch(messages, generation, begin));
            let source = match sent.and_then(|()| self.await_commit(begin, count)) {
                // The kernel has refused it for any other generation than the one that was read.
                Ok(None) => return Ok(following(generation)),
                Ok(Some(refusal)) => refusal.source,
                Err(source) => source,
            };
            if source.raw_os_error() != Some(ERESTART) {
                return Err(refused(source));
            }
        }
        Err(NetlinkError::Stale)
    }
}

fn refused(source: io::Error) -> NetlinkError {
    NetlinkError::Request {
        action: "change the learned addresses of names".to_owned(),
        source,
    }
}

impl TimedElement {
    fn message(&self, kind: u16, flags: u16, with_lifetime: bool) -> Message {
        let key = Attribute::Value(DATA_VALUE, self.key.clone());
        let mut entry = vec![Attribute::Nest(1, vec![key])];
        if with_lifetime {
            let millis = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
            // The kernel counts in ticks, and a lifetime of zero is without end.
            entry.push(Attribute::u64(ELEMENT_TIMEOUT, millis.max(1000)));
        }
        Message {
            kind,
            flags,
            attributes: vec![
                Attribute::text(1, TABLE),
                Attribute::text(2, &self.set),
                Attribute::Nest(3, vec![Attribute::Nest(LIST_ELEMENT, entry)]),
            ],
        }
    }
}

/// Keys and lifetimes of a message. Elements without both are skipped.
fn read(attributes: &[u8]) -> Vec<(Vec<u8>, Duration)> {
    let attributes = parse(attributes);
    let list = parse(find(&attributes, 3).unwrap_or_default());
    let entries = list.iter().filter(|entry| entry.number == LIST_ELEMENT);
    entries
        .filter_map(|entry| {
            let entry = parse(entry.value);
            let key = find(&parse(find(&entry, 1)?), DATA_VALUE)?.to_vec();
            let rest = observe::long(&entry, ELEMENT_EXPIRATION)
                .or_else(|| observe::long(&entry, ELEMENT_TIMEOUT))?;
            Some((key, Duration::from_millis(rest)))
        })
        .collect()
}
