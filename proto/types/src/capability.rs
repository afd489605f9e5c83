//! Resource classes and traits of machines, by the rules of OpenStack's Ironic and Placement.

use std::fmt;
use std::str::FromStr;

use crate::{ParseError, text_serde};

/// Longest resource class, characters; a longer one is refused.
const CLASS_LEN_MAX: usize = 80;
/// Longest trait, characters; a longer one is refused.
const TRAIT_LEN_MAX: usize = 255;
/// Begin of the names that sites choose.
const CUSTOM: &str = "CUSTOM_";
/// Begins of the names of standard traits.
const STANDARD: [&str; 5] = ["COMPUTE_", "HW_", "MISC_", "OWNER_", "STORAGE_"];

/// The resource class of a machine, as it was written.
///
/// Classes are compared by their [canonical](Self::canonical) form: `x-large`, `X_LARGE` and
/// `CUSTOM_X_LARGE` are one class.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceClass(Box<str>);

/// The name of a trait: `CUSTOM_` and more, or of a standard namespace, such as `HW_CPU_X86_AVX2`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraitName(Box<str>);

impl ResourceClass {
    /// The class as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name by which classes are compared: `CUSTOM_` and upper-case letters, digits and single
    /// underscores.
    pub fn canonical(&self) -> String {
        canonical(&self.0)
    }
}

impl TraitName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn canonical(class: &str) -> String {
    let mut name = String::with_capacity(CUSTOM.len() + class.len());
    for sign in class.chars() {
        if sign.is_ascii_alphanumeric() {
            name.push(sign.to_ascii_uppercase());
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    if !name.starts_with(CUSTOM) {
        name.insert_str(0, CUSTOM);
    }
    name
}

fn is_class(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "._-".contains(sign);
    (1..=CLASS_LEN_MAX).contains(&text.len())
        && text.chars().all(is_sign)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        // The prefix alone names nothing.
        && canonical(text) != CUSTOM
}

fn is_trait(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_';
    let mut begins = STANDARD.into_iter().chain([CUSTOM]);
    let rest = begins.find_map(|begin| text.strip_prefix(begin));
    text.len() <= TRAIT_LEN_MAX
        && rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_sign))
}

macro_rules! checked_text {
    ($name:ident, $what:literal, $check:ident, $rule:literal) => {
        impl FromStr for $name {
            type Err = ParseError;
            fn from_str(text: &str) -> Result<Self, ParseError> {
                if $check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(ParseError::new($what, text, $rule))
                }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
        text_serde!($name);
    };
}

checked_text!(
    ResourceClass,
    "resource class",
    is_class,
    "must have 1 to 80 characters out of letters, digits, '-', '_' and '.', the first a letter or \
     digit"
);
checked_text!(
    TraitName,
    "trait",
    is_trait,
    "must be CUSTOM_ or a standard namespace (COMPUTE_, HW_, MISC_, OWNER_, STORAGE_) and upper-case \
     letters, digits and '_', at most 255 characters"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_one_name() {
        for (text, canonical) in [
            ("baremetal", "CUSTOM_BAREMETAL"),
            ("x-large", "CUSTOM_X_LARGE"),
            ("x.-_large", "CUSTOM_X_LARGE"),
            ("X_LARGE", "CUSTOM_X_LARGE"),
            ("CUSTOM_X_LARGE", "CUSTOM_X_LARGE"),
            ("custom-x-large", "CUSTOM_X_LARGE"),
            ("custom", "CUSTOM_CUSTOM"),
            ("7", "CUSTOM_7"),
        ] {
            let class: ResourceClass = text.parse().unwrap();
            assert_eq!(class.canonical(), canonical, "{text}");
            assert_eq!(class.as_str(), text);
            // The canonical name is one that it keeps.
            let again: ResourceClass = canonical.parse().unwrap();
            assert_eq!(again.canonical(), canonical);
        }
    }

    #[test]
    fn classes_and_traits_are_checked() {
        let long = |begin: &str, length: usize| format!("{begin}{}", "A".repeat(length));
        for (text, ok) in [
            ("", false),
            ("-x", false),
            ("a b", false),
            ("ä", false),
            ("CUSTOM_", false),
            ("custom--", false),
            (long("", 80).as_str(), true),
            (long("", 81).as_str(), false),
        ] {
            assert_eq!(text.parse::<ResourceClass>().is_ok(), ok, "{text}");
        }
        for (text, ok) in [
            ("CUSTOM_GOLD", true),
            ("CUSTOM_1", true),
            ("HW_CPU_X86_AVX2", true),
            ("COMPUTE_NODE", true),
            ("STORAGE_DISK_SSD", true),
            ("MISC_SHARES_VIA_AGGREGATE", true),
            ("CUSTOM_", false),
            ("CUSTOM_gold", false),
            ("custom_GOLD", false),
            ("GOLD", false),
            ("HW", false),
            ("CUSTOM_A-B", false),
            (" CUSTOM_A", false),
            ("", false),
            (long("CUSTOM_", 248).as_str(), true),
            (long("CUSTOM_", 249).as_str(), false),
        ] {
            assert_eq!(text.parse::<TraitName>().is_ok(), ok, "{text}");
        }
    }
}
