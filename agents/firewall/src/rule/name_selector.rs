use std::fmt;

use proto_firewall::parts::dns_name;

/// Stands for `*` in names of sets, which cannot have it. No DNS name has it.
const STAR_IN_SET: &str = "/";

/// DNS names that a rule is for: small letters, without a dot at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameSelector {
    /// One name.
    Name(String),
    /// Names of a form. Each `*` stands for any number of letters, digits, `-` and `_`, also none,
    /// and never for a dot; the whole name must have the form. `*` alone stands for every name.
    Pattern(String),
}

impl NameSelector {
    /// Reads a name, as policies and state files write it. `None` if it is none.
    #[must_use]
    pub fn name(text: &str) -> Option<Self> {
        dns_name(text, false).map(Self::Name)
    }

    /// Reads a pattern. `None` if it is none.
    #[must_use]
    pub fn pattern(text: &str) -> Option<Self> {
        dns_name(text, true).map(Self::Pattern)
    }

    /// The name or the pattern.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Name(text) | Self::Pattern(text) => text,
        }
    }

    /// `true` if the rule is for that name, in small letters and without a dot at the end.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Pattern(pattern) if pattern == "*" => !name.is_empty(),
            Self::Pattern(pattern) => fits(pattern.as_bytes(), name.as_bytes()),
        }
    }

    /// Name of the set of its addresses of a family.
    #[must_use]
    pub fn set(&self, is_ipv4: bool) -> String {
        let family = if is_ipv4 { 4 } else { 6 };
        format!("fqdn{family}/{}", self.text().replace('*', STAR_IN_SET))
    }
}

impl fmt::Display for NameSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

/// Matches by going back to the last `*` only: it stands for the fewest characters first, and an
/// earlier one need never be tried again. So the work is at most the product of both lengths.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), name.get(seen)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                back = Some((at + 1, seen));
                at += 1;
            }
            (Some(wanted), Some(found)) if wanted == found => {
                // A dot is in no `*`: what stands before it is decided.
                if *found == b'.' {
                    back = None;
                }
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((after, taken)) = back else {
                    return false;
                };
                match name.get(taken) {
                    Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') => {}
                    _ => return false,
                }
                back = Some((after, taken + 1));
                (at, seen) = (after, taken + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NameSelector;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "example.com", true),
            ("*", "a", true),
            ("*.example.com", "api.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "a.b.example.com", false),
            ("*.example.com", "api.example.com.evil.net", false),
            ("*.example.com", "api-example.com", false),
            ("*.example.com", "apiXexample.com", false),
            ("*example.com", "example.com", true),
            ("*example.com", "my-example.com", true),
            ("*example.com", "a.example.com", false),
            ("a*b.c", "ab.c", true),
            ("a*b.c", "abab.c", true),
            ("a*b.c", "aba.c", false),
            ("a*b*c.d", "axbxbxc.d", true),
            ("a*b*c.d", "axbx.d", false),
            ("*.*.example.com", "a.b.example.com", true),
            ("*.*.example.com", "b.example.com", false),
            ("api.*", "api.com", true),
            ("api.*", "api.co.uk", false),
            ("s3-*.example.com", "s3-eu_1.example.com", true),
            ("*.example.com", ".example.com", true),
            ("*.example.com", "a b.example.com", false),
        ] {
            let selector = NameSelector::pattern(pattern).unwrap();
            assert_eq!(selector.matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_stars_ends() {
        let pattern = NameSelector::pattern(&"*a".repeat(30)).unwrap();
        assert!(!pattern.matches(&"a".repeat(63).replace('a', "b")));
        assert!(pattern.matches(&"a".repeat(63)));
    }

    #[test]
    fn names_are_normalized_or_refused() {
        let name = |text: &str| NameSelector::name(text).map(|name| name.text().to_owned());
        assert_eq!(name("API.Example.com."), Some("api.example.com".to_owned()));
        assert_eq!(
            name("_dmarc.example.com"),
            Some("_dmarc.example.com".to_owned())
        );
        let long = format!("{}.com", "a".repeat(64));
        for wrong in [
            "",
            ".",
            "a..b",
            "*.example.com",
            "a b",
            "ä.com",
            "a/b",
            "a;b",
            &long,
        ] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
        assert_eq!(NameSelector::pattern("*.a/b"), None);
        let star = NameSelector::pattern("*.example.com").unwrap();
        assert_eq!(star.set(true), "fqdn4//.example.com");
    }
}
