//! Where a browser may be sent with a token.

use url::{Host, Url};

/// The longest address that is looked at, bytes.
const LEN_MAX: usize = 2048;

/// Which addresses get tokens: those of programs on the browser's own machine, and those that the
/// configuration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redirects {
    known: Vec<Url>,
}

/// Why an address of the configuration is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// Not a URL.
    #[error("{0:?} is not a URL like https://console.example/login")]
    Malformed(String),
    /// It has a part that it must not have.
    #[error("{0:?} must be https:// with a host and a path, nothing more")]
    Shape(String),
}

impl Redirects {
    /// Also these; a path ending in `/` stands for everything below it.
    ///
    /// # Errors
    /// See [`RedirectError`].
    pub fn new(known: &[String]) -> Result<Self, RedirectError> {
        let known = known.iter().map(|text| {
            let url = Url::parse(text).map_err(|_| RedirectError::Malformed(text.clone()))?;
            let is_plain = is_plain(&url) && url.query().is_none();
            if url.scheme() == "https" && is_plain {
                Ok(url)
            } else {
                Err(RedirectError::Shape(text.clone()))
            }
        });
        Ok(Self {
            known: known.collect::<Result<_, _>>()?,
        })
    }

    /// The address, if tokens may go there.
    pub(super) fn allowed(&self, text: &str) -> Option<Url> {
        let url = Url::parse(text)
            .ok()
            .filter(|url| text.len() <= LEN_MAX && is_plain(url))?;
        (is_own_machine(&url) || self.known.iter().any(|known| covers(known, &url))).then_some(url)
    }
}

/// No user, no password, no fragment.
fn is_plain(url: &Url) -> bool {
    url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
}

fn is_own_machine(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    matches!(url.scheme(), "http" | "https") && is_loopback
}

fn covers(known: &Url, url: &Url) -> bool {
    let (prefix, path) = (known.path(), url.path());
    known.origin() == url.origin()
        && (path == prefix || prefix.ends_with('/') && path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_to_the_own_machine_and_to_known_places_only() {
        let known = ["https://console.example/app/", "https://other.example/in"];
        let redirects = Redirects::new(&known.map(str::to_owned)).unwrap();
        for good in [
            "http://127.0.0.1:40123/callback",
            "http://localhost:1/callback?x=y",
            "http://[::1]:9/x",
            "https://console.example/app/login",
            "https://console.example:443/app/",
            "https://other.example/in?next=1",
        ] {
            assert!(redirects.allowed(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "/callback",
            "http://10.0.0.1/callback",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://localhost@evil.example/",
            "http://evil.example\\@localhost/",
            "http://user:pw@127.0.0.1/",
            "http://127.0.0.1/#x",
            "ftp://127.0.0.1/",
            "javascript:alert(1)//localhost",
            "http://console.example/app/",
            "https://console.example:444/app/",
            "https://console.example/other",
            "https://console.example/app/../other",
            "https://other.example/inside",
            &format!("http://localhost/{}", "x".repeat(LEN_MAX)),
        ] {
            assert!(redirects.allowed(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_configuration_is_strict() {
        for bad in [
            "console.example",
            "http://console.example/",
            "https://u@console.example/",
            "https://console.example/?x=y",
        ] {
            assert!(Redirects::new(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
