//! Reads our table as a whole.

use std::collections::BTreeMap;

use super::attribute::{Attribute, RawAttribute, find, parse, text};
use super::constants::{OBJECT_COUNTER, message};
use super::error::NetlinkError;
use super::kernel::{Kernel, is};
use super::message::DUMP;
use super::observe;
use crate::model::TABLE;
use crate::plan::{Installed, InstalledChain};

/// Flag of a table that is switched off.
const DORMANT: u32 = 1;

impl Kernel {
    pub(super) fn read_once(&self) -> Result<Installed, NetlinkError> {
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
        self.read_chains(&mut installed.chains)?;
        Ok(installed)
    }

    /// Reads the chains of our table with their rules.
    pub(super) fn read_chains(
        &self,
        chains: &mut BTreeMap<String, InstalledChain>,
    ) -> Result<(), NetlinkError> {
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
        })
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
        // Elements that packets add say nothing about the rules, and may be very many.
        let filled = installed.sets.iter_mut();
        for (name, set) in filled.filter(|(_, set)| set.spec.size_max.is_none()) {
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
    pub(super) fn dump(
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
}

/// `true` if rules changed during a dump.
pub(super) fn is_interrupted(error: &NetlinkError) -> bool {
    matches!(
        error,
        NetlinkError::Request { source, .. } if source.kind() == std::io::ErrorKind::Interrupted
    )
}
