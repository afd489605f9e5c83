use std::net::IpAddr;
use std::path::PathBuf;

use reqwest::Url;

use super::address_rule::AddressRule;

/// First part of a URL of a file.
const FILE_SCHEME: &str = "file://";

/// The place of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseLocation {
    /// A file of this host.
    File(PathBuf),
    /// A file of a server, by https.
    Https(Url),
}

impl ReleaseLocation {
    /// Parses the place that a source names in `field`. `may_be_file` is `true` if the agent's own
    /// configuration names it: no other source names a file of this host.
    ///
    /// # Errors
    /// The field, the problem and a remedy. The URL is not in it: it may have a password.
    pub fn parse(
        text: &str,
        field: &str,
        may_be_file: bool,
        rule: &AddressRule,
    ) -> Result<Self, String> {
        let wrong = |problem: &str| Err(format!("{field}: {problem}"));
        let path = text.strip_prefix(FILE_SCHEME).unwrap_or(text);
        if path.starts_with('/') {
            return match may_be_file {
                true => Ok(Self::File(PathBuf::from(path))),
                false => wrong("only the configuration of this host names a file of it; use https"),
            };
        }
        let Ok(url) = Url::parse(text) else {
            return wrong("it is no URL; write https://HOST/PATH");
        };
        match refusal(&url, rule) {
            Some(problem) => wrong(problem),
            None => Ok(Self::Https(url)),
        }
    }
}

/// The reason why a URL is not fetched. `None` if it is; the addresses of its name are checked when
/// it is resolved.
pub(super) fn refusal(url: &Url, rule: &AddressRule) -> Option<&'static str> {
    if url.scheme() != "https" {
        return Some("it is not https; use https");
    }
    let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
        return Some("it has no host; write https://HOST/PATH");
    };
    // Addresses are in the URL's one spelling here, also such as 0x7f.1; those of IPv6 in brackets.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: Result<IpAddr, _> = host.parse();
    match address {
        Ok(address) if !rule.allows(address) => Some(
            "its address is local; use a public one, or add its prefix to the local prefixes of self-update",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressRule, ReleaseLocation};

    #[test]
    fn places_of_releases() {
        let open = AddressRule::new(vec!["10.0.0.0/8".parse().unwrap()]);
        for (text, problem) in [
            ("https://example.com/release?x=1", ""),
            ("https://user:secret@example.com:8443/release", ""),
            ("https://203.0.113.7/release", ""),
            ("https://10.0.0.1/release", ""),
            ("https://127.0.0.1/release", "its address is local"),
            ("https://0x7f.1/release", "its address is local"),
            ("https://[::1]/release", "its address is local"),
            ("https://[::ffff:127.0.0.1]/release", "its address is local"),
            ("https://169.254.169.254/latest", "its address is local"),
            ("http://example.com/release", "it is not https"),
            ("ftp://example.com/release", "it is not https"),
            ("data:,x", "it is not https"),
            ("release", "it is no URL"),
            ("", "it is no URL"),
            (
                "/tmp/release",
                "only the configuration of this host names a file",
            ),
            (
                "file:///tmp/release",
                "only the configuration of this host names a file",
            ),
        ] {
            let found = ReleaseLocation::parse(text, "url", false, &open)
                .err()
                .unwrap_or_default();
            assert_eq!(found.is_empty(), problem.is_empty(), "{text}: {found}");
            assert!(found.contains(problem), "{text}: {found}");
            assert!(!found.contains("secret"));
        }
        for text in ["/tmp/release", "file:///tmp/release"] {
            let found = ReleaseLocation::parse(text, "url", true, &open);
            assert_eq!(found, Ok(ReleaseLocation::File("/tmp/release".into())));
        }
        let host = "file://host/release";
        assert!(ReleaseLocation::parse(host, "url", true, &open).is_err());
    }
}
