/// Flag of an attribute that holds attributes.
const NESTED: u16 = 0x8000;
/// Bits of the number of an attribute.
const NUMBER: u16 = 0x3FFF;
/// Length of an attribute's header, bytes.
const HEADER: usize = 4;

/// A netlink attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// Number and value.
    Value(u16, Vec<u8>),
    /// Number and attributes.
    Nest(u16, Vec<Attribute>),
}

impl Attribute {
    /// An attribute with a text, which ends with a zero byte.
    pub(super) fn text(number: u16, text: &str) -> Self {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        Self::Value(number, value)
    }

    pub(super) fn u32(number: u16, value: u32) -> Self {
        Self::Value(number, value.to_be_bytes().to_vec())
    }

    pub(super) fn u64(number: u16, value: u64) -> Self {
        Self::Value(number, value.to_be_bytes().to_vec())
    }

    fn number(&self) -> u16 {
        match self {
            Self::Value(number, _) | Self::Nest(number, _) => *number,
        }
    }

    /// An attribute that holds attributes, which are encoded already.
    pub(super) fn encoded(number: u16, attributes: Vec<u8>) -> Self {
        Self::Value(number | NESTED, attributes)
    }

    /// Appends the attribute. Its value must be shorter than 64 KiB.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self {
            Self::Value(number, value) => put(*number, into, |into| into.extend(value)),
            Self::Nest(number, inner) => put_nest(*number, into, |into| {
                for attribute in inner {
                    attribute.encode(into);
                }
            }),
        }
    }
}

/// Appends an attribute with the value that `write` appends. For what there may be thousands of:
/// without a value of its own for each part.
pub(super) fn put(number: u16, into: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = into.len();
    into.extend([0; HEADER]);
    write(into);
    let length = u16::try_from(into.len() - begin).unwrap_or(u16::MAX);
    into[begin..begin + 2].copy_from_slice(&length.to_ne_bytes());
    into[begin + 2..begin + 4].copy_from_slice(&number.to_ne_bytes());
    into.resize(into.len().next_multiple_of(4), 0);
}

/// As [`put`], for an attribute that holds attributes.
pub(super) fn put_nest(number: u16, into: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    put(number | NESTED, into, write);
}

/// The attributes in bytes, as number and value. Ends at the first that is cut off.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<RawAttribute<'_>> {
    let mut found = Vec::new();
    while let [len_low, len_high, number_low, number_high, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([len_low, len_high]));
        let number = u16::from_ne_bytes([number_low, number_high]) & NUMBER;
        let Some(value) = bytes.get(HEADER..length) else {
            break;
        };
        found.push(RawAttribute { number, value });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// An attribute of a message from the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAttribute<'a> {
    pub(crate) number: u16,
    pub(crate) value: &'a [u8],
}

/// The value of the first attribute with that number.
pub(crate) fn find<'a>(attributes: &[RawAttribute<'a>], number: u16) -> Option<&'a [u8]> {
    attributes
        .iter()
        .find(|attribute| attribute.number == number)
        .map(|attribute| attribute.value)
}

/// A text without its zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&value[..end.unwrap_or(value.len())]).into_owned()
}

/// `true` if the bytes of a dump have every attribute that was sent, with the same value. The kernel
/// adds attributes with its defaults; of those that may be repeated, the numbers must be equal too.
#[must_use]
pub fn covers(dumped: &[u8], sent: &[Attribute]) -> bool {
    let found = parse(dumped);
    let mut taken = vec![false; found.len()];
    for attribute in sent {
        let next =
            (0..found.len()).find(|at| !taken[*at] && found[*at].number == attribute.number());
        let Some(at) = next else {
            return false;
        };
        taken[at] = true;
        let is_equal = match attribute {
            Attribute::Value(_, value) => found[at].value == value,
            Attribute::Nest(_, inner) => covers(found[at].value, inner),
        };
        if !is_equal {
            return false;
        }
    }
    let sent_has = |number| sent.iter().any(|attribute| attribute.number() == number);
    let mut rest = found.iter().zip(&taken);
    !rest.any(|(extra, is_taken)| !is_taken && sent_has(extra.number))
}

#[cfg(test)]
mod tests {
    use super::{Attribute, covers, find, parse};

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        Attribute::text(1, "abc").encode(&mut bytes);
        let nest = Attribute::Nest(2, vec![Attribute::u32(7, 9), Attribute::Value(8, vec![1])]);
        nest.encode(&mut bytes);
        assert_eq!(bytes.len() % 4, 0);
        let parsed = parse(&bytes);
        assert_eq!(find(&parsed, 1), Some(b"abc\0".as_slice()));
        let inner = parse(find(&parsed, 2).unwrap());
        assert_eq!(find(&inner, 7), Some([0, 0, 0, 9].as_slice()));
        assert_eq!(find(&inner, 8), Some([1].as_slice()));
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).len() <= 2);
        }
    }

    #[test]
    fn a_dump_may_have_more_attributes_and_no_other_values() {
        let encode = |attributes: &[Attribute]| {
            let mut bytes = Vec::new();
            for attribute in attributes {
                attribute.encode(&mut bytes);
            }
            bytes
        };
        let one = Attribute::u32(1, 1);
        let sent = [one.clone(), Attribute::Nest(2, vec![one.clone()])];
        let more = Attribute::u32(3, 3);
        let dump = [
            more.clone(),
            one.clone(),
            Attribute::Nest(2, vec![more.clone(), one.clone()]),
        ];
        assert!(covers(&encode(&dump), &sent));
        assert!(
            !covers(&encode(&dump[..2]), &sent),
            "an attribute is missing"
        );
        assert!(
            !covers(&encode(&sent), &[Attribute::u32(1, 2)]),
            "another value"
        );
        let repeated = [one.clone(), one.clone()];
        assert!(!covers(&encode(&repeated), &[one]), "one too many");
    }
}
