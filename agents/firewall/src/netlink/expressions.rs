use super::attribute::Attribute;
use super::constants::{
    DATA_VALUE, DATA_VERDICT, LIST_ELEMENT, OBJECT_COUNTER, VERDICT_CHAIN, VERDICT_CODE,
};
use crate::model::{Expression, MetaKey, PayloadBase, REPORT_GROUP, REPORT_LEN, Register, Verdict};

/// Burst of a limit of packets.
const BURST_PACKETS: u32 = 5;
/// The kernel's number of a jump.
const JUMP: i32 = -3;
/// The kernel's number of a return.
const RETURN: i32 = -5;
/// Level of log lines: warning.
const LOG_LEVEL: u32 = 4;
/// The kernel's numbers of what `ct` loads.
const CT_STATE: u32 = 0;
const CT_DIRECTION: u32 = 1;
const CT_MARK: u32 = 3;
/// Flag of a lookup: it matches if the key is missing.
const LOOKUP_INVERTED: u32 = 1;
/// An element of a set is added, or its lifetime begins anew.
const DYNSET_UPDATE: u32 = 1;
/// The number of the extension header of fragments.
const FRAGMENT_HEADER: u8 = 44;

/// The list of expressions of a rule, without the attribute around it.
#[must_use]
pub fn encode(expressions: &[Expression]) -> Vec<Attribute> {
    expressions
        .iter()
        .map(|expression| {
            let (name, data) = match expression {
                Expression::Lookup { .. }
                | Expression::LookupMissing { .. }
                | Expression::CountByMap { .. }
                | Expression::OverPacketsByKey { .. } => encode_of_set(expression),
                Expression::Count(_)
                | Expression::LimitPackets(_)
                | Expression::OverPackets { .. }
                | Expression::OverBytes(_)
                | Expression::Log(_)
                | Expression::Report(_) => encode_statement(expression),
                Expression::Hash { .. }
                | Expression::SourceNat { .. }
                | Expression::Masquerade
                | Expression::Verdict(_) => encode_end(expression),
                _ => encode_match(expression),
            };
            Attribute::Nest(LIST_ELEMENT, named(name, data))
        })
        .collect()
}

/// The name of an expression, and its attributes.
fn named(name: &str, data: Vec<Attribute>) -> Vec<Attribute> {
    vec![Attribute::text(1, name), Attribute::Nest(2, data)]
}

/// A register by its number in messages. The kernel names the first of four differently, and its
/// dumps do too.
fn register(attribute: u16, register: Register) -> Attribute {
    let index = u32::from(register);
    let number = if index.is_multiple_of(4) {
        1 + index / 4
    } else {
        8 + index
    };
    Attribute::u32(attribute, number)
}

fn value(attribute: u16, value: &[u8]) -> Attribute {
    let value = Attribute::Value(DATA_VALUE, value.to_vec());
    Attribute::Nest(attribute, vec![value])
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn encode_match(expression: &Expression) -> (&'static str, Vec<Attribute>) {
    match expression {
        Expression::Meta { key, register: to } => {
            let key = match key {
                MetaKey::InputName => 6,
                MetaKey::OutputName => 7,
                MetaKey::SocketUser => 10,
                MetaKey::Family => 15,
                MetaKey::Protocol => 16,
            };
            ("meta", vec![register(1, *to), Attribute::u32(2, key)])
        }
        Expression::Payload {
            base,
            offset,
            length,
            register: to,
        } => {
            let base = match base {
                PayloadBase::Network => 1,
                PayloadBase::Transport => 2,
            };
            let numbers = [(2, base), (3, *offset), (4, *length)];
            let numbers = numbers.map(|(number, value)| Attribute::u32(number, value));
            let mut all = vec![register(1, *to)];
            all.extend(numbers);
            ("payload", all)
        }
        Expression::HasFragmentHeader { register: to } => {
            let kind = Attribute::Value(2, vec![FRAGMENT_HEADER]);
            // Offset, length, "present", and the operation: extension headers of IPv6.
            let numbers = [(3, 0), (4, 1), (5, 1), (6, 0)];
            let numbers = numbers.map(|(number, value)| Attribute::u32(number, value));
            let mut all = vec![register(1, *to), kind];
            all.extend(numbers);
            ("exthdr", all)
        }
        Expression::CtState { register: to } => load_ct(*to, CT_STATE),
        Expression::CtDirection { register: to } => load_ct(*to, CT_DIRECTION),
        Expression::CtMark { register: to } => load_ct(*to, CT_MARK),
        Expression::SetCtMark { register: of } => {
            ("ct", vec![register(4, *of), Attribute::u32(2, CT_MARK)])
        }
        Expression::Mask { register: at, mask } => bitwise(*at, mask, &vec![0; mask.len()]),
        Expression::Replace {
            register: at,
            mask,
            value: bits,
        } => bitwise(*at, mask, bits),
        Expression::Equal {
            register: at,
            value: with,
        } => compare(*at, 0, with),
        Expression::NotEqual {
            register: at,
            value: with,
        } => compare(*at, 1, with),
        Expression::Load {
            register: to,
            value: of,
        } => ("immediate", vec![register(1, *to), value(2, of)]),
        _ => ("", Vec::new()),
    }
}

fn load_ct(to: Register, key: u32) -> (&'static str, Vec<Attribute>) {
    ("ct", vec![register(1, to), Attribute::u32(2, key)])
}

/// Keeps the bits of a mask, and turns those of `bits`.
fn bitwise(at: Register, mask: &[u8], bits: &[u8]) -> (&'static str, Vec<Attribute>) {
    let all = vec![
        register(1, at),
        register(2, at),
        Attribute::u32(3, length(mask)),
        value(4, mask),
        value(5, bits),
    ];
    ("bitwise", all)
}

fn compare(at: Register, operator: u32, with: &[u8]) -> (&'static str, Vec<Attribute>) {
    (
        "cmp",
        vec![register(1, at), Attribute::u32(2, operator), value(3, with)],
    )
}

/// The flags of a lookup are sent even if there are none: a dump has them, and one that differs by them
/// matches the contrary.
fn encode_of_set(expression: &Expression) -> (&'static str, Vec<Attribute>) {
    match expression {
        Expression::Lookup {
            set,
            register: at,
            destination,
        } => {
            let mut all = vec![Attribute::text(1, set), register(2, *at)];
            all.extend(destination.map(|to| register(3, to)));
            all.push(Attribute::u32(5, 0));
            ("lookup", all)
        }
        Expression::LookupMissing { set, register: at } => {
            let inverted = Attribute::u32(5, LOOKUP_INVERTED);
            let all = vec![Attribute::text(1, set), register(2, *at), inverted];
            ("lookup", all)
        }
        Expression::CountByMap { map, register: at } => {
            ("objref", vec![register(3, *at), Attribute::text(4, map)])
        }
        Expression::OverPacketsByKey {
            set,
            register: at,
            rate,
            burst,
        } => {
            let limit = limit(u64::from(*rate), *burst, 0, Attribute::u32(5, 1));
            let all = vec![
                Attribute::text(1, set),
                Attribute::u32(3, DYNSET_UPDATE),
                register(4, *at),
                Attribute::Nest(7, named("limit", limit)),
            ];
            ("dynset", all)
        }
        _ => ("", Vec::new()),
    }
}

fn encode_statement(expression: &Expression) -> (&'static str, Vec<Attribute>) {
    match expression {
        Expression::Count(counter) => (
            "objref",
            vec![
                Attribute::u32(1, OBJECT_COUNTER),
                Attribute::text(2, counter),
            ],
        ),
        Expression::LimitPackets(rate) => {
            let flags = Attribute::u32(5, 0);
            ("limit", limit(u64::from(*rate), BURST_PACKETS, 0, flags))
        }
        Expression::OverPackets { rate, burst } => {
            let flags = Attribute::u32(5, 1);
            ("limit", limit(u64::from(*rate), *burst, 0, flags))
        }
        Expression::OverBytes(rate) => {
            // A burst of a second, so that one large packet after silence is no excess.
            let burst = u32::try_from(*rate).unwrap_or(u32::MAX);
            ("limit", limit(*rate, burst, 1, Attribute::u32(5, 1)))
        }
        Expression::Log(prefix) => (
            "log",
            vec![Attribute::text(2, prefix), Attribute::u32(5, LOG_LEVEL)],
        ),
        Expression::Report(prefix) => {
            let group = REPORT_GROUP.to_be_bytes().to_vec();
            let all = vec![
                Attribute::Value(1, group),
                Attribute::text(2, prefix),
                Attribute::u32(3, REPORT_LEN),
            ];
            ("log", all)
        }
        _ => ("", Vec::new()),
    }
}

/// A limit per second; `kind` 0 counts packets, 1 bytes.
fn limit(rate: u64, burst: u32, kind: u32, flags: Attribute) -> Vec<Attribute> {
    vec![
        Attribute::u64(1, rate),
        Attribute::u64(2, 1),
        Attribute::u32(3, burst),
        Attribute::u32(4, kind),
        flags,
    ]
}

fn encode_end(expression: &Expression) -> (&'static str, Vec<Attribute>) {
    match expression {
        Expression::Hash {
            source,
            length,
            modulus,
            register: to,
        } => (
            "hash",
            vec![
                register(1, *source),
                register(2, *to),
                Attribute::u32(3, *length),
                Attribute::u32(4, *modulus),
                // A seed of our own: without one the kernel draws it, and flows change sources
                // when the rule is made anew.
                Attribute::u32(5, 1),
                Attribute::u32(7, 0),
            ],
        ),
        Expression::SourceNat {
            is_ipv4,
            register: at,
        } => {
            let family = if *is_ipv4 { 2 } else { 10 };
            let all = vec![
                Attribute::u32(1, 0),
                Attribute::u32(2, family),
                register(3, *at),
            ];
            ("nat", all)
        }
        Expression::Masquerade => ("masq", Vec::new()),
        Expression::Verdict(verdict) => {
            let (code, chain) = match verdict {
                Verdict::Drop => (0, None),
                Verdict::Accept => (1, None),
                Verdict::Return => (RETURN, None),
                Verdict::Jump(chain) => (JUMP, Some(chain)),
            };
            let mut all = vec![Attribute::Value(VERDICT_CODE, code.to_be_bytes().to_vec())];
            all.extend(chain.map(|name| Attribute::text(VERDICT_CHAIN, name)));
            let data = vec![Attribute::Nest(DATA_VERDICT, all)];
            (
                "immediate",
                vec![Attribute::u32(1, 0), Attribute::Nest(2, data)],
            )
        }
        _ => ("", Vec::new()),
    }
}
