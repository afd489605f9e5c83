//! Ids that users choose.

use std::borrow::Borrow;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::{ParseError, text_serde};

const NAME_MIN: usize = 2;
const NAME_MAX: usize = 128;
const DESCRIPTION_MAX: usize = 256;
const HOSTNAME_MAX: usize = 253;
const HOSTNAME_LABEL_MAX: usize = 63;

/// `is_name` of the contract: 2 to 128 characters.
pub fn is_name(text: &str) -> bool {
    (NAME_MIN..=NAME_MAX).contains(&text.chars().count())
}

/// `is_description` of the contract: at most 256 characters.
pub fn is_description(text: &str) -> bool {
    text.chars().count() <= DESCRIPTION_MAX
}

/// Host name after RFC 1123: letters, digits and hyphens in dotted labels of at most 63.
pub fn is_hostname(text: &str) -> bool {
    !text.is_empty() && text.len() <= HOSTNAME_MAX && text.split('.').all(is_label)
}

/// An address that can be dialled, and that stands in messages, files and command lines without harm:
/// `HOST:PORT`, the host being a name (underscores may be in it), an IPv4 address, or an IPv6 address in
/// brackets, the port 1 to 65535.
pub fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = is_digits && port.parse::<u16>().is_ok_and(|port| port > 0);
    let in_brackets = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    is_port
        && match in_brackets {
            Some(host) => host.parse::<Ipv6Addr>().is_ok(),
            None => is_hostname(&host.replace('_', "x")),
        }
}

fn is_label(label: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=HOSTNAME_LABEL_MAX).contains(&label.len())
        && label.chars().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// A name without control characters and without blanks at its ends.
fn is_printable_name(text: &str) -> bool {
    is_name(text) && text.trim() == text && !text.chars().any(char::is_control)
}

fn is_path_segment(text: &str) -> bool {
    is_printable_name(text)
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !text.starts_with('.')
}

fn is_switch(text: &str) -> bool {
    is_name(text) && is_hostname(text)
}

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:expr, $rule:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = ParseError;
            fn from_str(text: &str) -> Result<Self, ParseError> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(ParseError::new($what, text, $rule))
                }
            }
        }
        /// Permits a lookup in a map by plain text, without parsing it first.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
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

name_id!(
    /// A tenant's login; a user's login is the login of the personal tenant.
    TenantId,
    "tenant login",
    is_printable_name,
    "must have 2 to 128 characters, none of them a control character, no blanks at the ends"
);
name_id!(
    /// A partition: part of agents' certificate ids.
    PartitionId,
    "partition id",
    is_path_segment,
    "must have 2 to 128 characters out of letters, digits, '-', '_' and '.', no leading '.'"
);
name_id!(
    /// A pool of hosts that tenants claim.
    PoolId,
    "pool id",
    is_path_segment,
    "must have 2 to 128 characters out of letters, digits, '-', '_' and '.', no leading '.'"
);
name_id!(
    /// A size of machines.
    SizeId,
    "size id",
    is_printable_name,
    "must have 2 to 128 characters, none of them a control character, no blanks at the ends"
);
name_id!(
    /// An operating system image, `os-version`.
    ImageId,
    "image id",
    is_printable_name,
    "must have 2 to 128 characters, none of them a control character, no blanks at the ends"
);
name_id!(
    /// A filesystem layout.
    LayoutId,
    "filesystem layout id",
    is_printable_name,
    "must have 2 to 128 characters, none of them a control character, no blanks at the ends"
);
name_id!(
    /// A network; made of a UUID for child networks.
    NetworkId,
    "network id",
    is_printable_name,
    "must have 2 to 128 characters, none of them a control character, no blanks at the ends"
);
name_id!(
    /// A switch: its host name, as LLDP announces it.
    SwitchId,
    "switch id",
    is_switch,
    "must be a host name of 2 to 128 characters"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_contract() {
        let long = "x".repeat(NAME_MAX);
        let cases = [
            ("ab", true),
            ("a", false),
            ("", false),
            (long.as_str(), true),
            (&format!("{long}x"), false),
            ("öä", true),
        ];
        for (text, ok) in cases {
            assert_eq!(is_name(text), ok, "{text}");
        }
    }

    #[test]
    fn addresses_that_can_be_dialled() {
        for (text, ok) in [
            ("control-2.example:4444", true),
            ("control_2:1", true),
            ("192.0.2.1:65535", true),
            ("[2001:db8::2]:4444", true),
            ("2001:db8::2:4444", false),
            ("[control-2]:4444", false),
            ("control-2", false),
            (":4444", false),
            ("control-2:0", false),
            ("control-2:+44", false),
            ("control-2:65536", false),
            ("a\nb:4444", false),
            ("a;reboot:4444", false),
            ("$(reboot):4444", false),
            ("a b:4444", false),
            ("a\u{1b}[2J:4444", false),
            ("-oProxyCommand=x:4444", false),
        ] {
            assert_eq!(is_host_and_port(text), ok, "{text:?}");
        }
    }

    #[test]
    fn hostnames() {
        for (text, ok) in [
            ("leaf1", true),
            ("leaf1.rack.example", true),
            ("-leaf", false),
            ("leaf-", false),
            ("le_af", false),
            ("", false),
            ("a..b", false),
        ] {
            assert_eq!(is_hostname(text), ok, "{text}");
        }
    }

    #[test]
    fn partitions_fit_into_a_path() {
        for (text, ok) in [
            ("fra-equ01", true),
            ("a/b", false),
            ("..", false),
            ("lab.1", true),
        ] {
            assert_eq!(text.parse::<PartitionId>().is_ok(), ok, "{text}");
        }
    }
}
