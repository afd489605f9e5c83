//! Versions of images, and requirements on them.
//!
//! An image id is `<os>-<major>[.<minor>[.<patch>]]`. Numbers may have leading zeros
//! (`ubuntu-24.04`), which is why this is not a semver library.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::catalog::entity::{Classification, Image};
use crate::tables::Tables;

/// Version of an image. A missing minor number is 0: `debian-12` means `debian-12.0`. A missing patch
/// counts as 0 in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageVersion {
    /// First number.
    pub major: u64,
    /// Second number.
    pub minor: u64,
    /// Third number: usually a date.
    pub patch: Option<u64>,
}

impl ImageVersion {
    fn numbers(self) -> [u64; 3] {
        [self.major, self.minor, self.patch.unwrap_or(0)]
    }
}

fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Operating system and version of an image id.
pub fn parse_image_id(id: &str) -> Result<(&str, ImageVersion), Error> {
    let bad = || {
        Error::new(
            ErrorCode::ImageIdInvalid,
            format!("image id \"{id}\" is malformed"),
        )
    };
    let (os, version) = id.rsplit_once('-').ok_or_else(bad)?;
    let mut parts = version.split('.').map(number);
    let major = parts.next().flatten().ok_or_else(bad)?;
    let minor = match parts.next() {
        None => 0,
        Some(minor) => minor.ok_or_else(bad)?,
    };
    let patch = match parts.next() {
        None => None,
        Some(patch) => Some(patch.ok_or_else(bad)?),
    };
    if os.is_empty() || parts.next().is_some() {
        return Err(bad());
    }
    Ok((
        os,
        ImageVersion {
            major,
            minor,
            patch,
        },
    ))
}

/// The image that a user means: the exact one, or without a patch the newest that is good at
/// this time and has this classification (any without one).
pub fn newest_image<'a>(
    tables: &'a Tables,
    id: &str,
    classification: Option<Classification>,
    now: Timestamp,
) -> Result<&'a Arc<Image>, Error> {
    let (os, wanted) = parse_image_id(id)?;
    if wanted.patch.is_some() {
        let image = tables.all::<Image>().find(|image| image.id.as_str() == id);
        return image.ok_or_else(|| Error::not_found("image", id));
    }
    let versions = || {
        tables.all::<Image>().filter_map(|image| {
            let (its_os, version) = parse_image_id(image.id.as_str()).ok()?;
            let same = (its_os, version.major, version.minor) == (os, wanted.major, wanted.minor);
            same.then_some((version, image))
        })
    };
    versions()
        .filter(|(_, image)| classification.is_none_or(|c| image.classification == c))
        .filter(|(_, image)| now < image.expires_at)
        .max_by_key(|(version, _)| version.numbers())
        .map(|(_, image)| image)
        .ok_or_else(|| match versions().next() {
            Some((_, image)) => Error::not_found("image", id).hint(format!(
                "image \"{}\" has expired or is not supported, and is not chosen for this id; an \
                 administrator classifies it, or name one with its patch",
                image.id
            )),
            None => Error::not_found("image", id),
        })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Tilde,
    Caret,
}

/// A requirement like `>= 12.0, < 13`, `~ 24.04`, `*`; alternatives are separated by `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requirement(Vec<Vec<(Op, Vec<u64>)>>);

impl Requirement {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let alternatives = text
            .split("||")
            .map(Self::parse_all)
            .collect::<Option<Vec<_>>>();
        alternatives.map(Self).ok_or_else(|| {
            Error::invalid("version requirement", format!("\"{text}\" cannot be read"))
                .hint("for example: >= 12.0, < 13")
        })
    }

    fn parse_all(text: &str) -> Option<Vec<(Op, Vec<u64>)>> {
        text.split(',').map(Self::parse_one).collect()
    }

    fn parse_one(text: &str) -> Option<(Op, Vec<u64>)> {
        const OPS: [(&str, Op); 10] = [
            (">=", Op::GreaterEqual),
            ("<=", Op::LessEqual),
            ("==", Op::Equal),
            ("!=", Op::NotEqual),
            ("~>", Op::Tilde),
            (">", Op::Greater),
            ("<", Op::Less),
            ("=", Op::Equal),
            ("~", Op::Tilde),
            ("^", Op::Caret),
        ];
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Some((Op::Equal, Vec::new()));
        }
        let (op, rest) = OPS
            .iter()
            .find_map(|(sign, op)| text.strip_prefix(sign).map(|rest| (*op, rest)))
            .unwrap_or((Op::Equal, text));
        let mut numbers = Vec::new();
        for part in rest.trim().split('.') {
            if matches!(part, "*" | "x" | "X") {
                break;
            }
            numbers.push(number(part)?);
        }
        (numbers.len() <= 3).then_some((op, numbers))
    }

    pub(crate) fn matches(&self, version: ImageVersion) -> bool {
        let numbers = version.numbers();
        self.0
            .iter()
            .any(|all| all.iter().all(|(op, wanted)| holds(*op, numbers, wanted)))
    }
}

fn holds(op: Op, have: [u64; 3], wanted: &[u64]) -> bool {
    let prefix = have.iter().take(wanted.len()).copied().collect::<Vec<_>>();
    let order = prefix.as_slice().cmp(wanted);
    match op {
        Op::Equal => order.is_eq(),
        Op::NotEqual => order.is_ne(),
        Op::Less => order.is_lt(),
        Op::LessEqual => order.is_le(),
        Op::Greater => order.is_gt(),
        Op::GreaterEqual => order.is_ge(),
        // The first two numbers are fixed (one, when only one is given).
        Op::Tilde => order.is_ge() && same(have, wanted, wanted.len().min(2)),
        // The first number that is not zero is fixed.
        Op::Caret => {
            let fixed = wanted
                .iter()
                .position(|n| *n != 0)
                .map_or(wanted.len(), |at| at + 1);
            order.is_ge() && same(have, wanted, fixed)
        }
    }
}

fn same(have: [u64; 3], wanted: &[u64], count: usize) -> bool {
    have.iter().zip(wanted).take(count).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_ids() {
        for (id, os, numbers) in [
            ("debian-12.0.20250101", "debian", [12, 0, 20_250_101]),
            ("ubuntu-24.04", "ubuntu", [24, 4, 0]),
            ("debian-12", "debian", [12, 0, 0]),
            ("firewall-ubuntu-3.0.1", "firewall-ubuntu", [3, 0, 1]),
        ] {
            let (its_os, version) = parse_image_id(id).unwrap();
            assert_eq!((its_os, version.numbers()), (os, numbers), "{id}");
        }
        for id in [
            "debian",
            "-12",
            "-12.0",
            "debian-12.0.1.2",
            "debian-a.b",
            "debian-12.",
        ] {
            assert!(parse_image_id(id).is_err(), "{id}");
        }
    }

    #[test]
    fn requirements() {
        for (requirement, id, holds) in [
            ("*", "debian-12.0.1", true),
            (">= 12.0", "debian-12.0.20250101", true),
            (">= 12.0, < 13", "debian-13.1.1", false),
            (">= 12.1", "debian-12.0.99", false),
            ("~ 24.04", "ubuntu-24.04.20250101", true),
            ("~ 24.04", "ubuntu-24.10.1", false),
            ("~24", "ubuntu-24.10.1", true),
            ("^1.2", "x-1.9.0", true),
            ("^1.2", "x-2.0.0", false),
            ("12.0", "debian-12.0.7", true),
            ("12.*", "debian-12.5.7", true),
            ("!= 12.0", "debian-12.0.7", false),
            ("11.0 || 12.0", "debian-12.0.7", true),
            ("> 12.0.5", "debian-12.0.6", true),
        ] {
            let (_, version) = parse_image_id(id).unwrap();
            let parsed = Requirement::parse(requirement).unwrap();
            assert_eq!(parsed.matches(version), holds, "{requirement} {id}");
        }
        for bad in [">= y", "1.2.3.4", "latest"] {
            assert!(Requirement::parse(bad).is_err(), "{bad}");
        }
    }
}
