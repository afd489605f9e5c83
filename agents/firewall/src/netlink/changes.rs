use super::attribute::Attribute;
use super::constants::{
    DATA_VALUE, LIST_ELEMENT, OBJECT_COUNTER, SET_MAP, SET_OBJECT, SET_TIMEOUT, message,
};
use super::expressions;
use super::message::{APPEND, CREATE, Message};
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
        Change::AddCounter(name) => one(message::NEW_OBJECT, CREATE, counter(name, true)),
        Change::RemoveCounter(name) => one(message::DELETE_OBJECT, 0, counter(name, false)),
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

fn counter(name: &str, is_new: bool) -> Vec<Attribute> {
    let mut all = vec![
        Attribute::text(1, TABLE),
        Attribute::text(2, name),
        Attribute::u32(3, OBJECT_COUNTER),
    ];
    if is_new {
        let zero = vec![Attribute::u64(1, 0), Attribute::u64(2, 0)];
        all.push(Attribute::Nest(4, zero));
    }
    all
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
    let mut length = 0;
    for (index, keyed) in elements.iter().enumerate() {
        let attribute = element(keyed, spec, kind == message::NEW_ELEMENT);
        length += attribute.encoded_len();
        part.push(attribute);
        if length >= ELEMENTS_LEN_MAX || index + 1 == elements.len() {
            length = 0;
            made.push(Message {
                kind,
                flags,
                attributes: vec![
                    Attribute::text(1, TABLE),
                    Attribute::text(2, set),
                    Attribute::Nest(3, std::mem::take(&mut part)),
                ],
            });
        }
    }
    made
}

fn element(keyed: &KeyedElement, spec: &SetSpec, with_value: bool) -> Attribute {
    let value = |number, bytes: &[u8]| {
        Attribute::Nest(number, vec![Attribute::Value(DATA_VALUE, bytes.to_vec())])
    };
    let mut all = vec![value(1, &keyed.key)];
    match &keyed.element {
        Element::Counter(name) if with_value && spec.has_counters => {
            all.push(Attribute::text(9, name));
        }
        Element::Data(data) if with_value => all.push(value(2, data)),
        _ => {}
    }
    Attribute::Nest(LIST_ELEMENT, all)
}
