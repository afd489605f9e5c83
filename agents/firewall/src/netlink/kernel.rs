use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::attribute::{Attribute, RawAttribute, find, parse, text};
use super::changes;
use super::constants::{OBJECT_COUNTER, message};
use super::error::NetlinkError;
use super::message::{DUMP, Message, batch};
use super::observe;
use super::results::{Applied, CounterValue};
use super::socket::{Answer, Socket};
use crate::model::{NftTable, TABLE};
use crate::plan::{Change, Installed, plan, split};

/// Attempts to read or to change while somebody else changes rules.
const ATTEMPTS_MAX: usize = 20;
/// Flag of a table that is switched off.
const DORMANT: u32 = 1;
/// Error of a transaction for another generation than the current one.
pub(super) const ERESTART: i32 = 85;

/// Our table in the kernel, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Kernel {
    pub(super) socket: Socket,
    /// Sequence number of the next message. Answers to earlier ones, such as the rest of the errors
    /// of a refused transaction, are skipped by it.
    pub(super) sequence: AtomicU32,
    /// Our table when it was last read. It is what the kernel holds while its generation is current.
    last: RefCell<Installed>,
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

    /// Takes the generation `current` for that of the table as it was last read, because every
    /// change between both only learned or forgot elements with timeouts.
    pub fn adopt(&self, last: u32, current: u32) {
        let mut installed = self.last.borrow_mut();
        if installed.generation == last {
            installed.generation = current;
        }
    }

    /// Reads our table, of one generation.
    ///
    /// # Errors
    /// A request failed, or others change rules without a pause.
    pub fn read(&self) -> Result<Installed, NetlinkError> {
        for _ in 0..ATTEMPTS_MAX {
            let generation = self.generation()?;
            if self.last.borrow().generation == generation {
                return Ok(self.last.borrow().clone());
            }
            match self.read_once() {
                Err(error) if is_interrupted(&error) => continue,
                read => {
                    let mut installed = read?;
                    installed.generation = generation;
                    if self.generation()? == generation {
                        self.last.replace(installed.clone());
                        return Ok(installed);
                    }
                }
            }
        }
        Err(NetlinkError::Stale)
    }

    /// Makes the kernel's table the desired one, and verifies it. All changes that decide about
    /// packets are one transaction; the removal of chains and sets that are unused afterwards is
    /// another one.
    ///
    /// # Errors
    /// The kernel refused a transaction; then nothing of it was done.
    /// [`NetlinkError::NotApplied`] if the table differs afterwards.
    pub fn apply(&self, desired: &NftTable) -> Result<Applied, NetlinkError> {
        let mut made: Vec<Change> = Vec::new();
        let mut first = None;
        for _ in 0..ATTEMPTS_MAX {
            let installed = self.read()?;
            let generation = installed.generation;
            let rest = split(plan(&installed, desired), desired);
            let part = if rest.decisive.is_empty() {
                rest.cleanup
            } else {
                rest.decisive
            };
            first = part.first().map(ToString::to_string);
            if part.is_empty() {
                return Ok(Applied {
                    changes: made,
                    generation,
                });
            }
            match self.commit(&part, generation) {
                Err(NetlinkError::Stale) => continue,
                committed => committed?,
            }
            made.extend(part);
        }
        Err(first.map_or(NetlinkError::Stale, NetlinkError::NotApplied))
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
        Ok(found)
    }

    fn read_once(&self) -> Result<Installed, NetlinkError> {
        let mut installed = Installed::default();
        self.dump(message::GET_TABLE, message::NEW_TABLE, |attributes| {
            installed.exists = true;
            let flags = observe::number(attributes, 2).unwrap_or(0);
            installed.is_dormant = flags & DORMANT != 0;
            Some(())
        })?;
        if !installed.exists {
            return Ok(installed);
        }
        self.dump(message::GET_OBJECT, message::NEW_OBJECT, |attributes| {
            if observe::number(attributes, 3) == Some(OBJECT_COUNTER) {
                installed.counters.insert(text(find(attributes, 2)?));
            } else {
                installed.has_other_objects = true;
            }
            Some(())
        })?;
        self.read_sets(&mut installed)?;
        let chains = &mut installed.chains;
        self.dump(message::GET_CHAIN, message::NEW_CHAIN, |attributes| {
            let name = text(find(attributes, 3)?);
            chains.insert(name, observe::chain(attributes));
            Some(())
        })?;
        self.dump(message::GET_RULE, message::NEW_RULE, |attributes| {
            let name = text(find(attributes, 2)?);
            let rule = observe::rule(attributes)?;
            chains.entry(name).or_default().rules.push(rule);
            Some(())
        })?;
        Ok(installed)
    }

    fn read_sets(&self, installed: &mut Installed) -> Result<(), NetlinkError> {
        self.dump(message::GET_SET, message::NEW_SET, |attributes| {
            let name = text(find(attributes, 2)?);
            match observe::set(attributes) {
                Some(set) => {
                    installed.sets.insert(name, set);
                }
                // It goes with the rule that it belongs to.
                None if observe::is_anonymous(attributes) => {}
                None => {
                    installed.foreign_sets.insert(name);
                }
            }
            Some(())
        })?;
        for (name, set) in &mut installed.sets {
            let which = vec![Attribute::text(1, TABLE), Attribute::text(2, name)];
            let action = format!("read the set {name}");
            let answers = self.request(message::GET_ELEMENT, DUMP, which, &action)?;
            for answer in answers
                .iter()
                .filter(|answer| is(answer, message::NEW_ELEMENT))
            {
                observe::add_elements(&parse(answer.attributes()), set)
                    .ok_or(NetlinkError::Malformed("an element without a key"))?;
            }
        }
        Ok(())
    }

    /// Reads every object of a kind in our table.
    fn dump(
        &self,
        kind: u16,
        answer_kind: u16,
        mut take: impl FnMut(&[RawAttribute<'_>]) -> Option<()>,
    ) -> Result<(), NetlinkError> {
        let answers = self.request(kind, DUMP, Vec::new(), "read the kernel's rules")?;
        for answer in answers.iter().filter(|answer| is(answer, answer_kind)) {
            let attributes = parse(answer.attributes());
            // The kernel does not filter every dump by the table that is asked for.
            if find(&attributes, 1).map(text).as_deref() == Some(TABLE) {
                take(&attributes).ok_or(NetlinkError::Malformed("an object lacks attributes"))?;
            }
        }
        Ok(())
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
            loop {
                let answers = self.socket.receive()?;
                for answer in answers
                    .into_iter()
                    .filter(|answer| answer.sequence == sequence)
                {
                    match answer.result() {
                        Some(result) => return result.map(|()| all),
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
    fn commit(&self, changes: &[Change], generation: u32) -> Result<(), NetlinkError> {
        let mut messages = Vec::new();
        // For each message the change that it belongs to, to name the one that the kernel refuses.
        let mut owners = Vec::new();
        for (number, change) in (1_u32..).zip(changes) {
            let made = changes::messages(change, number);
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

fn is_interrupted(error: &NetlinkError) -> bool {
    matches!(
        error,
        NetlinkError::Request { source, .. } if source.kind() == io::ErrorKind::Interrupted
    )
}
