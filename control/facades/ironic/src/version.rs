//! Microversions.

use http::{HeaderMap, StatusCode};

use crate::error::IronicError;

/// Newest microversion.
pub(crate) const NEWEST: u16 = 115;
/// Oldest microversion whose shape of requests and answers is kept. Requests of older ones are
/// answered in this shape: the SDK asks for allocations in 1.60 and reads what it knows.
pub(crate) const OLDEST_SHAPE: u16 = 80;
/// Oldest microversion that is accepted, and the one of requests that name none.
pub(crate) const OLDEST: u16 = 1;

/// Header of Ironic's own, in requests and answers.
pub(crate) const HEADER: &str = "x-openstack-ironic-api-version";
/// Header of all OpenStack APIs: `baremetal 1.N`.
const COMMON_HEADER: &str = "openstack-api-version";
/// Name of the service in [`COMMON_HEADER`].
const SERVICE: &str = "baremetal";

/// The microversion of a request, `1.N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ApiVersion(u16);

/// The text of a version that is not served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VersionRefused(pub(crate) String);

impl VersionRefused {
    /// 406, which tells clients to ask for the range and to choose from it.
    pub(crate) fn error(&self) -> IronicError {
        let asked = &self.0;
        let text = format!(
            "Version {asked} was requested but is not supported by this service. The supported \
             version range is: [1.{OLDEST}, 1.{NEWEST}]."
        );
        IronicError::new(StatusCode::NOT_ACCEPTABLE, text)
    }
}

impl ApiVersion {
    /// A version, `1.` and this number.
    pub(crate) const fn of(minor: u16) -> Self {
        Self(minor)
    }

    /// The version that a request names, or the oldest one.
    ///
    /// # Errors
    /// The text of a version that is malformed or not served.
    pub(crate) fn of_request(headers: &HeaderMap) -> Result<Self, VersionRefused> {
        let text = |name: &str| {
            let value = headers.get(name)?;
            Some(value.to_str().unwrap_or("?").trim().to_owned())
        };
        let common = || {
            let all = text(COMMON_HEADER)?;
            let mut services = all.split(',').filter_map(|one| one.trim().split_once(' '));
            let own = services.find(|(service, _)| service.eq_ignore_ascii_case(SERVICE))?;
            Some(own.1.trim().to_owned())
        };
        let Some(named) = text(HEADER).or_else(common) else {
            return Ok(Self(OLDEST));
        };
        Self::parse(&named).ok_or(VersionRefused(named))
    }

    fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("latest") {
            return Some(Self(NEWEST));
        }
        let minor = text.strip_prefix("1.")?.parse::<u16>().ok()?;
        (OLDEST..=NEWEST).contains(&minor).then_some(Self(minor))
    }

    /// `true` if what microversion `1.minor` introduced is a part of this one.
    pub(crate) const fn has(self, minor: u16) -> bool {
        minor <= OLDEST_SHAPE || minor <= self.0
    }

    /// As on the wire.
    pub(crate) fn text(self) -> String {
        format!("1.{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn named(headers: &[(&'static str, &'static str)]) -> Result<ApiVersion, VersionRefused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        ApiVersion::of_request(&map)
    }

    #[test]
    fn versions_of_requests() {
        let refused = |text: &str| Err(VersionRefused(text.to_owned()));
        for (headers, expected) in [
            (vec![], Ok(ApiVersion(1))),
            (vec![(HEADER, "1.115")], Ok(ApiVersion(115))),
            (vec![(HEADER, "latest")], Ok(ApiVersion(115))),
            (vec![(HEADER, "1.116")], refused("1.116")),
            (vec![(HEADER, "2.1")], refused("2.1")),
            (vec![(HEADER, "1.0")], refused("1.0")),
            (vec![(HEADER, "x")], refused("x")),
            (vec![(COMMON_HEADER, "baremetal 1.60")], Ok(ApiVersion(60))),
            (
                vec![(COMMON_HEADER, "compute 2.1, baremetal 1.90")],
                Ok(ApiVersion(90)),
            ),
            (vec![(COMMON_HEADER, "compute 2.1")], Ok(ApiVersion(1))),
            (
                vec![(COMMON_HEADER, "baremetal 1.60"), (HEADER, "1.81")],
                Ok(ApiVersion(81)),
            ),
        ] {
            assert_eq!(named(&headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn shapes_reach_down_to_the_oldest_one() {
        assert!(ApiVersion::of(60).has(80) && !ApiVersion::of(60).has(81));
        assert!(ApiVersion::of(115).has(115) && !ApiVersion::of(114).has(115));
    }
}
