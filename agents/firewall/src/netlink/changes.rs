use super::attribute::{Attribute, put, put_nest};
use super::constants::{
    DATA_VALUE, DESCRIPTION_SIZE, LIST_ELEMENT, OBJECT_COUNTER, SET_DESCRIPTION, SET_EVAL,
    SET_LIFETIME, SET_MAP, SET_OBJECT, SET_TIMEOUT, message,
};
use super::expressions;
use super::message::{APPEND, CREATE, Message};
use super::results::CounterValue;
use crate::model::{BaseChain, Element, SetSpec, TABLE};
use crate::plan::{Change, KeyedElement};

/// Bytes of elements in a message; an attribute is shorter than 64 KiB.
const ELEMENTS_LEN_MAX: usize = 48 * 1024;

/// The messages of a change. `number` is different for each change of a transaction.
pub(super) fn messages(change: &Change, number: u32) -> Vec<Message> {
    let table = |attribute| Attribute::text(attribute, TABLE);
    let one = |kind, flags, attributes| {
        vec![Message {
            kind,
            flags,
            attributes,
        }]
    };
    match change {
        Change::AddTable => one(message::NEW_TABLE, CREATE, vec![table(1)]),
        Change::RemoveTable => one(message::DELETE_TABLE, 0, vec![table(1)]),
        Change::AddCounter(name) => vec![new_counter(name, CounterValue::default())],
        Change::RemoveCounter(name) => one(message::DELETE_OBJECT, 0, counter(name)),
        Change::AddSet { set, spec } => {
            let mut all = vec![table(1), Attribute::text(2, set)];
            all.extend(layout(spec));
            all.push(Attribute::u32(10, number));
            one(message::NEW_SET, CREATE, all)
        }
        Change::RemoveSet(set) => {
            let all = vec![table(1), Attribute::text(2, set)];
            one(message::DELETE_SET, 0, all)
        }
        Change::AddElements {
            set,
            spec,
            elements,
        } => element_messages(message::NEW_ELEMENT, CREATE, set, spec, elements),
        Change::RemoveElements {
            set,
            spec,
            elements,
        } => element_messages(message::DELETE_ELEMENT, 0, set, spec, elements),
        Change::AddChain { chain, base } => {
            let mut all = vec![table(1), Attribute::text(3, chain)];
            all.extend(base.map(hook).unwrap_or_default());
            one(message::NEW_CHAIN, CREATE, all)
        }
        Change::RemoveChain(chain) => {
            let all = vec![table(1), Attribute::text(3, chain)];
            one(message::DELETE_CHAIN, 0, all)
        }
        Change::AddRule {
            chain,
            before,
            rule,
        } => {
            let encoded = expressions::encode(&rule.expressions);
            let mut all = vec![table(1), Attribute::text(2, chain)];
            all.push(Attribute::Nest(4, encoded));
            all.extend(before.map(|handle| Attribute::u64(6, handle)));
            let place = if before.is_some() { 0 } else { APPEND };
            one(message::NEW_RULE, CREATE | place, all)
        }
        Change::RemoveRule { chain, handle } => {
            let all = vec![
                table(1),
                Attribute::text(2, chain),
                Attribute::u64(3, *handle),
            ];
            one(message::DELETE_RULE, 0, all)
        }
    }
}

/// The message that creates a counter with a value.
pub(super) fn new_counter(name: &str, begin: CounterValue) -> Message {
    let mut attributes = counter(name);
    let value = vec![
        Attribute::u64(1, begin.bytes),
        Attribute::u64(2, begin.packets),
    ];
    attributes.push(Attribute::Nest(4, value));
    Message {
        kind: message::NEW_OBJECT,
        flags: CREATE,
        attributes,
    }
}

fn counter(name: &str) -> Vec<Attribute> {
    vec![
        Attribute::text(1, TABLE),
        Attribute::text(2, name),
        Attribute::u32(3, OBJECT_COUNTER),
    ]
}

fn layout(spec: &SetSpec) -> Vec<Attribute> {
    let mut flags = 0;
    let mut rest = Vec::new();
    if spec.has_counters {
        flags |= SET_OBJECT;
        rest.push(Attribute::u32(15, OBJECT_COUNTER));
    }
    if spec.has_timeout {
        flags |= SET_TIMEOUT;
    }
    if let Some(size_max) = spec.size_max {
        flags |= SET_EVAL;
        let size = vec![Attribute::u32(DESCRIPTION_SIZE, size_max)];
        rest.push(Attribute::Nest(SET_DESCRIPTION, size));
        rest.push(Attribute::u64(SET_LIFETIME, spec.lifetime_ms));
    }
    if let Some(data_type) = spec.data_type {
        flags |= SET_MAP;
        rest.push(Attribute::u32(6, data_type));
        rest.push(Attribute::u32(7, spec.data_len));
    }
    let mut all = vec![
        Attribute::u32(3, flags),
        Attribute::u32(4, spec.key_type),
        Attribute::u32(5, spec.key_len),
    ];
    all.extend(rest);
    all.push(Attribute::Value(13, byte_orders(spec)));
    all
}

/// Byte orders of key and data. The kernel keeps them for nft, which shows the elements by them.
fn byte_orders(spec: &SetSpec) -> Vec<u8> {
    const HOST: u32 = 1;
    const BIG: u32 = 2;
    let of_key = match spec.key_type {
        SetSpec::INTERFACE | SetSpec::MARK => HOST,
        _ => BIG,
    };
    let mut orders = vec![0, 4];
    orders.extend(of_key.to_ne_bytes());
    if spec.data_type.is_some() {
        orders.extend([1, 4]);
        orders.extend(BIG.to_ne_bytes());
    }
    orders
}

fn hook(base: BaseChain) -> Vec<Attribute> {
    let priority = base.priority().to_be_bytes().to_vec();
    let place = vec![
        Attribute::u32(1, base.hook()),
        Attribute::Value(2, priority),
    ];
    vec![
        Attribute::Nest(4, place),
        Attribute::u32(5, u32::from(base.accepts())),
        Attribute::text(7, base.kind()),
    ]
}

fn element_messages(
    kind: u16,
    flags: u16,
    set: &str,
    spec: &SetSpec,
    elements: &[KeyedElement],
) -> Vec<Message> {
    let mut made = Vec::new();
    let mut part = Vec::new();
    for (index, keyed) in elements.iter().enumerate() {
        put_element(keyed, spec, kind == message::NEW_ELEMENT, &mut part);
        if part.len() >= ELEMENTS_LEN_MAX || index + 1 == elements.len() {
            made.push(Message {
                kind,
                flags,
                attributes: vec![
                    Attribute::text(1, TABLE),
                    Attribute::text(2, set),
                    Attribute::encoded(3, std::mem::take(&mut part)),
                ],
            });
        }
    }
    made
}

fn put_element(keyed: &KeyedElement, spec: &SetSpec, with_value: bool, into: &mut Vec<u8>) {
    let put_value = |number, bytes: &[u8], into: &mut Vec<u8>| {
        put_nest(number, into, |into| {
            put(DATA_VALUE, into, |into| into.extend(bytes));
        });
    };
    put_nest(LIST_ELEMENT, into, |into| {
        put_value(1, &keyed.key, into);
        match &keyed.element {
            Element::Counter(name) if with_value && spec.has_counters => put(9, into, |into| {
                into.extend(name.as_bytes());
                into.push(0);
            }),
            Element::Data(data) if with_value => put_value(2, data, into),
            _ => {}
        }
    });
}
