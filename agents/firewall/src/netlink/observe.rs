//! Reads dumps of the kernel.

use std::collections::BTreeMap;

use super::attribute::{RawAttribute, find, parse, text};
use super::constants::{
    DATA_VALUE, DESCRIPTION_SIZE, LIST_ELEMENT, SET_ANONYMOUS, SET_DESCRIPTION, SET_EVAL,
    SET_LIFETIME, SET_MAP, SET_OBJECT, SET_TIMEOUT,
};
use crate::model::{BaseChain, Element, NftSet, SetSpec};
use crate::plan::{InstalledChain, InstalledRule};

/// Verdict of a base chain without one.
const ACCEPT: u32 = 1;

pub(super) fn number(attributes: &[RawAttribute<'_>], attribute: u16) -> Option<u32> {
    let value = find(attributes, attribute)?;
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

pub(super) fn long(attributes: &[RawAttribute<'_>], attribute: u16) -> Option<u64> {
    let value = find(attributes, attribute)?;
    Some(u64::from_be_bytes(value.try_into().ok()?))
}

/// Reads a chain, without its rules.
pub(super) fn chain(attributes: &[RawAttribute<'_>]) -> InstalledChain {
    let Some(hook) = find(attributes, 4) else {
        return InstalledChain {
            is_well_placed: true,
            ..InstalledChain::default()
        };
    };
    let hook = parse(hook);
    let (place, priority) = (number(&hook, 1), number(&hook, 2));
    let policy = number(attributes, 5).unwrap_or(ACCEPT);
    let kind = find(attributes, 7).map(text);
    let is_like = |base: &BaseChain| {
        place == Some(base.hook())
            && priority == Some(base.priority().cast_unsigned())
            && policy == u32::from(base.accepts())
            && kind.as_deref() == Some(base.kind())
    };
    let base = BaseChain::ALL.into_iter().find(is_like);
    InstalledChain {
        base,
        is_well_placed: base.is_some(),
        rules: Vec::new(),
    }
}

/// Reads a rule.
pub(super) fn rule(attributes: &[RawAttribute<'_>]) -> Option<InstalledRule> {
    Some(InstalledRule {
        handle: long(attributes, 3)?,
        expressions: find(attributes, 4).unwrap_or_default().to_vec(),
    })
}

/// Reads a set, without its elements. `None` if it has flags that ours never have.
pub(super) fn set(attributes: &[RawAttribute<'_>]) -> Option<NftSet> {
    let flags = number(attributes, 3).unwrap_or(0);
    if flags & !(SET_MAP | SET_OBJECT | SET_TIMEOUT | SET_EVAL) != 0 {
        return None;
    }
    let has_data = flags & SET_MAP != 0;
    let (size_max, lifetime_ms) = if flags & SET_EVAL == 0 {
        (None, 0)
    } else {
        let description = find(attributes, SET_DESCRIPTION).unwrap_or_default();
        let lifetime_ms = long(attributes, SET_LIFETIME).unwrap_or(0);
        (
            // 0 is without a bound, as none of ours is.
            Some(number(&parse(description), DESCRIPTION_SIZE).unwrap_or(0)),
            lifetime_ms,
        )
    };
    let spec = SetSpec {
        key_type: number(attributes, 4)?,
        key_len: number(attributes, 5)?,
        has_counters: flags & SET_OBJECT != 0,
        data_type: number(attributes, 6).filter(|_| has_data),
        data_len: number(attributes, 7).filter(|_| has_data).unwrap_or(0),
        has_timeout: flags & SET_TIMEOUT != 0,
        size_max,
        lifetime_ms,
    };
    Some(NftSet {
        spec,
        elements: BTreeMap::new(),
    })
}

/// `true` for the set of a single rule, which has no name of its own.
pub(super) fn is_anonymous(attributes: &[RawAttribute<'_>]) -> bool {
    number(attributes, 3).is_some_and(|flags| flags & SET_ANONYMOUS != 0)
}

/// Adds the elements of a message to a set.
pub(super) fn add_elements(attributes: &[RawAttribute<'_>], into: &mut NftSet) -> Option<()> {
    let list = parse(find(attributes, 3).unwrap_or_default());
    for entry in list.iter().filter(|entry| entry.number == LIST_ELEMENT) {
        let entry = parse(entry.value);
        let key = find(&parse(find(&entry, 1)?), DATA_VALUE)?.to_vec();
        let element = match (find(&entry, 9), find(&entry, 2)) {
            (Some(counter), _) => Element::Counter(text(counter)),
            (None, Some(data)) => Element::Data(find(&parse(data), DATA_VALUE)?.to_vec()),
            (None, None) => Element::Member,
        };
        into.elements.insert(key, element);
    }
    Some(())
}
