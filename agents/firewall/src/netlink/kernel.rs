use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::attribute::{Attribute, find, parse, text};
use super::changes;
use super::constants::{OBJECT_COUNTER, message};
use super::error::NetlinkError;
use super::message::{DUMP, Message, batch};
use super::observe;
use super::results::CounterValue;
use super::socket::{Answer, Socket};
use crate::compile::RuleCompiler;
use crate::plan::{Change, Installed};

/// Error of a transaction for another generation than the current one.
pub(super) const ERESTART: i32 = 85;

/// Our table in the kernel, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Kernel {
    pub(super) socket: Socket,
    /// Sequence number of the next message. Answers to earlier ones, such as the rest of the errors
    /// of a refused transaction, are skipped by it.
    pub(super) sequence: AtomicU32,
    /// Our table when it was last read, with our own changes since. It is what the kernel holds while
    /// its generation is current.
    pub(super) last: RefCell<Installed>,
    /// Values of counters when they were last read. A counter that must be created again, because
    /// its table was removed, begins there.
    pub(super) carried: RefCell<BTreeMap<String, CounterValue>>,
    pub(super) compiler: RefCell<RuleCompiler>,
}

impl Kernel {
    /// Opens the kernel's nftables.
    ///
    /// # Errors
    /// [`NetlinkError::Open`].
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self {
            socket: Socket::open()?,
            sequence: AtomicU32::new(1),
            last: RefCell::default(),
            carried: RefCell::default(),
            compiler: RefCell::default(),
        })
    }

    /// The generation of all rules: it differs after every change by anybody.
    ///
    /// # Errors
    /// The request failed.
    pub fn generation(&self) -> Result<u32, NetlinkError> {
        let action = "read the generation of the kernel's rules";
        let answers = self.request(message::GET_GENERATION, 0, Vec::new(), action)?;
        let first = answers
            .iter()
            .find(|answer| is(answer, message::NEW_GENERATION));
        first
            .and_then(|answer| observe::number(&parse(answer.attributes()), 1))
            .ok_or(NetlinkError::Malformed("no generation"))
    }

    /// The counters of our table by name.
    ///
    /// # Errors
    /// The request failed.
    pub fn counters(&self) -> Result<BTreeMap<String, CounterValue>, NetlinkError> {
        let mut found = BTreeMap::new();
        self.dump(message::GET_OBJECT, message::NEW_OBJECT, |attributes| {
            if observe::number(attributes, 3) != Some(OBJECT_COUNTER) {
                return Some(());
            }
            let name = text(find(attributes, 2)?);
            let data = parse(find(attributes, 4)?);
            let value = CounterValue {
                bytes: observe::long(&data, 1)?,
                packets: observe::long(&data, 2)?,
            };
            found.insert(name, value);
            Some(())
        })?;
        // Those that are missing were removed by somebody else.
        let mut carried = self.carried.borrow_mut();
        carried.extend(found.iter().map(|(name, value)| (name.clone(), *value)));
        Ok(found)
    }

    /// Sends a request and returns the answers.
    pub(super) fn request(
        &self,
        kind: u16,
        flags: u16,
        attributes: Vec<Attribute>,
        action: &str,
    ) -> Result<Vec<Answer>, NetlinkError> {
        let asked = Message {
            kind,
            flags,
            attributes,
        };
        let is_dump = flags & DUMP == DUMP;
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let run = || -> io::Result<Vec<Answer>> {
            let mut bytes = Vec::new();
            asked.encode(sequence, !is_dump, &mut bytes);
            self.socket.send(&bytes)?;
            let mut all = Vec::new();
            let mut is_interrupted = false;
            loop {
                let answers = self.socket.receive()?;
                for answer in answers
                    .into_iter()
                    .filter(|answer| answer.sequence == sequence)
                {
                    // A dump is read to its end: until then the kernel begins no other one.
                    is_interrupted |= answer.is_interrupted;
                    match answer.result() {
                        Some(result) => return result.map(|()| all),
                        None if answer.is_end() && is_interrupted => {
                            return Err(io::ErrorKind::Interrupted.into());
                        }
                        None if answer.is_end() => return Ok(all),
                        None => all.push(answer),
                    }
                }
            }
        };
        run().map_err(|source| NetlinkError::Request {
            action: action.to_owned(),
            source,
        })
    }

    /// Sends the changes as one transaction for a generation.
    pub(super) fn commit(&self, changes: &[Change], generation: u32) -> Result<(), NetlinkError> {
        let carried = self.carried.borrow();
        let mut messages = Vec::new();
        // For each message the change that it belongs to, to name the one that the kernel refuses.
        let mut owners = Vec::new();
        for (number, change) in (1_u32..).zip(changes) {
            let made = match change {
                Change::AddCounter(name) => {
                    let begin = carried.get(name).copied().unwrap_or_default();
                    vec![changes::new_counter(name, begin)]
                }
                other => changes::messages(other, number),
            };
            owners.extend(std::iter::repeat_n(change, made.len()));
            messages.extend(made);
        }
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        let begin = self
            .sequence
            .fetch_add(count.saturating_add(1), Ordering::Relaxed);
        let bytes = batch(&messages, generation, begin);
        let sent = self.socket.send(&bytes);
        let (offset, source) = match sent.and_then(|()| self.await_commit(begin, count)) {
            Ok(None) => return Ok(()),
            Ok(Some(refusal)) => (refusal.offset, refusal.source),
            Err(source) => (0, source),
        };
        // The begin is refused if the generation is another one by now.
        if source.raw_os_error() == Some(ERESTART) {
            return Err(NetlinkError::Stale);
        }
        let change = offset.checked_sub(1).and_then(|at| owners.get(at));
        let action = change.map_or_else(|| "change the rules".to_owned(), ToString::to_string);
        Err(NetlinkError::Request { action, source })
    }

    /// Waits until the kernel has carried out a transaction, or refused one of its messages.
    pub(super) fn await_commit(&self, begin: u32, count: u32) -> io::Result<Option<Refusal>> {
        loop {
            let answers = match self.socket.receive() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                answers => answers?,
            };
            for answer in answers {
                let Some(offset) = answer.sequence.checked_sub(begin) else {
                    continue;
                };
                match answer.result() {
                    Some(Err(source)) => {
                        let offset = usize::try_from(offset).map_err(io::Error::other)?;
                        return Ok(Some(Refusal { offset, source }));
                    }
                    Some(Ok(())) if offset == count => return Ok(None),
                    _ => {}
                }
            }
        }
    }
}

/// A message of a transaction that the kernel refused.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Place in the transaction; 0 is its begin.
    pub(super) offset: usize,
    pub(super) source: io::Error,
}

pub(super) fn is(answer: &Answer, kind: u16) -> bool {
    answer.kind & 0xFF == kind && answer.kind >> 8 == super::constants::SUBSYSTEM
}
