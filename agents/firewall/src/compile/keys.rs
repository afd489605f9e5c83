//! Expressions that load a key of a shape.

use super::shape::{Shape, TransportShape};
use crate::model::{Expression, MetaKey, PayloadBase, Register, SetSpec};

/// Numbers of the families in `meta nfproto`.
const FAMILY_IPV4: u8 = 2;
const FAMILY_IPV6: u8 = 10;

/// Matches packets of a family.
pub(super) fn family(is_ipv4: bool) -> [Expression; 2] {
    let number = if is_ipv4 { FAMILY_IPV4 } else { FAMILY_IPV6 };
    [
        Expression::Meta {
            key: MetaKey::Family,
            register: 0,
        },
        Expression::Equal {
            register: 0,
            value: vec![number],
        },
    ]
}

/// Matches ICMP packets of a type, in either version's protocol.
pub(super) fn icmp_type(protocol: u8, kind: u8) -> [Expression; 4] {
    let is = |value| Expression::Equal {
        register: 0,
        value: vec![value],
    };
    [
        Expression::Meta {
            key: MetaKey::Protocol,
            register: 0,
        },
        is(protocol),
        Expression::Payload {
            base: PayloadBase::Transport,
            offset: 0,
            length: 1,
            register: 0,
        },
        is(kind),
    ]
}

/// Loads the leading bits of the source or the destination address; returns the registers used.
pub(super) fn address(
    is_ipv4: bool,
    is_source: bool,
    prefix_len: u8,
    register: Register,
    into: &mut Vec<Expression>,
) -> Register {
    let (length, offset) = match (is_ipv4, is_source) {
        (true, true) => (4, 12),
        (true, false) => (4, 16),
        (false, true) => (16, 8),
        (false, false) => (16, 24),
    };
    into.push(Expression::Payload {
        base: PayloadBase::Network,
        offset,
        length,
        register,
    });
    if u32::from(prefix_len) < length * 8 {
        let mask = leading_ones(prefix_len, if is_ipv4 { 4 } else { 16 });
        into.push(Expression::Mask { register, mask });
    }
    if is_ipv4 { 1 } else { 4 }
}

/// Loads a key of the shape from register 0 on.
pub(super) fn load(shape: &Shape) -> Vec<Expression> {
    let mut made = Vec::new();
    let mut register = 0;
    for (is_source, len) in [(true, shape.source_len), (false, shape.destination_len)] {
        if len > 0 {
            register += address(shape.is_ipv4, is_source, len, register, &mut made);
        }
    }
    if shape.transport != TransportShape::Any {
        made.push(Expression::Meta {
            key: MetaKey::Protocol,
            register,
        });
        register += 1;
    }
    let transport = |offset, length| Expression::Payload {
        base: PayloadBase::Transport,
        offset,
        length,
        register,
    };
    match shape.transport {
        TransportShape::Any | TransportShape::Protocol => {}
        TransportShape::IcmpType => made.push(transport(0, 1)),
        TransportShape::Port(bits) => {
            made.push(transport(2, 2));
            if bits < 16 {
                let mask = leading_ones(bits, 2);
                made.push(Expression::Mask { register, mask });
            }
        }
    }
    made
}

/// Layout of a set with keys of the shape.
pub(super) fn spec(shape: &Shape, has_counters: bool) -> SetSpec {
    let (address, address_len) = if shape.is_ipv4 {
        (SetSpec::IPV4, 4)
    } else {
        (SetSpec::IPV6, 16)
    };
    let mut fields = Vec::new();
    for len in [shape.source_len, shape.destination_len] {
        if len > 0 {
            fields.push((address, address_len));
        }
    }
    match shape.transport {
        TransportShape::Any => {}
        TransportShape::Protocol => fields.push((SetSpec::PROTOCOL, 4)),
        TransportShape::Port(_) => fields.extend([(SetSpec::PROTOCOL, 4), (SetSpec::PORT, 4)]),
        TransportShape::IcmpType => {
            let kind = if shape.is_ipv4 {
                SetSpec::ICMP_TYPE
            } else {
                SetSpec::ICMP6_TYPE
            };
            fields.extend([(SetSpec::PROTOCOL, 4), (kind, 4)]);
        }
    }
    SetSpec {
        has_counters,
        // nft has six bits for each field of a concatenation.
        ..SetSpec::members(
            fields.iter().fold(0, |all, field| all << 6 | field.0),
            fields.iter().map(|field| field.1).sum(),
        )
    }
}

/// A mask of `bits` ones, then zeros.
fn leading_ones(bits: u8, length: usize) -> Vec<u8> {
    let mut mask = Vec::with_capacity(length);
    let mut left = u32::from(bits);
    for _ in 0..length {
        let ones = left.min(8);
        mask.push(0xFF_u8.checked_shl(8 - ones).unwrap_or(0));
        left -= ones;
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::leading_ones;

    #[test]
    fn masks() {
        assert_eq!(leading_ones(0, 2), [0, 0]);
        assert_eq!(leading_ones(9, 4), [0xFF, 0x80, 0, 0]);
        assert_eq!(leading_ones(32, 4), [0xFF; 4]);
    }
}
