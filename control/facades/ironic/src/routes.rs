//! The table of all routes, and the match of a request with it.

use http::Method;

use crate::request::Parameters;
use crate::route::IronicRoute;
use crate::version::ApiVersion;
use crate::{allocations, life, neutron, nodes, ports, site};

/// The routes of each resource. Within a table a path with a name stands before one with a parameter
/// in its place: the first that fits counts.
static TABLES: [&[IronicRoute]; 6] = [
    life::ROUTES,
    nodes::ROUTES,
    ports::ROUTES,
    allocations::ROUTES,
    site::ROUTES,
    neutron::ROUTES,
];

/// Most parts of a path; a longer one fits no route.
const PARTS_MAX: usize = 12;

/// The route of a request.
#[derive(Debug)]
pub(crate) enum RouteMatch {
    /// A route, with the parameters of the path.
    Found(&'static IronicRoute, Parameters),
    /// The path is known, with other verbs.
    OtherVerb,
    /// There is no such path in this microversion.
    Unknown,
}

/// Finds the route of a path. `/v1` may be left out, and a slash may follow.
pub(crate) fn find(verb: &Method, path: &str, version: ApiVersion) -> RouteMatch {
    let parts: Option<Vec<String>> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(decoded)
        .collect();
    let Some(parts) = parts.filter(|parts| parts.len() <= PARTS_MAX) else {
        return RouteMatch::Unknown;
    };
    let parts = match parts.split_first() {
        Some((first, rest)) if first == "v1" => rest,
        _ => parts.as_slice(),
    };
    let mut is_known = false;
    for route in TABLES.iter().flat_map(|table| table.iter()) {
        let Some(parameters) = fits(route.path, parts).filter(|_| version.has(route.since)) else {
            continue;
        };
        if route.verb == *verb {
            return RouteMatch::Found(route, parameters);
        }
        is_known = true;
    }
    match is_known {
        true => RouteMatch::OtherVerb,
        false => RouteMatch::Unknown,
    }
}

/// The parameters of a path, if it fits the pattern.
fn fits(pattern: &str, parts: &[String]) -> Option<Parameters> {
    let mut wanted = pattern.split('/').filter(|part| !part.is_empty());
    let mut parameters = Parameters::new();
    for part in parts {
        let name = wanted.next()?;
        match name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
        {
            Some(name) => parameters.push((name.to_owned(), part.clone())),
            None if name == part => {}
            None => return None,
        }
    }
    wanted.next().is_none().then_some(parameters)
}

/// A part of a path without its percent signs. `None` if it is malformed.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Vec<String> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    }

    #[test]
    fn patterns_and_paths() {
        for (pattern, path, expected) in [
            ("/nodes", "/nodes", Some(vec![])),
            ("/nodes", "/nodes/x", None),
            ("/nodes/{node}", "/nodes/x", Some(vec![("node", "x")])),
            ("/nodes/{node}", "/nodes", None),
            (
                "/nodes/{node}/traits/{trait}",
                "/nodes/x/traits/y",
                Some(vec![("node", "x"), ("trait", "y")]),
            ),
            ("/nodes/{node}/traits", "/nodes/x/vifs", None),
        ] {
            let expected: Option<Parameters> = expected.map(|pairs| {
                let owned = |pair: (&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
                pairs.into_iter().map(owned).collect()
            });
            assert_eq!(fits(pattern, &parts(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn percent_signs_are_decoded() {
        assert_eq!(decoded("a%20b").as_deref(), Some("a b"));
        assert_eq!(decoded("%C3%A4").as_deref(), Some("\u{e4}"));
        for malformed in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn every_method_of_a_route_fits_its_verb() {
        for route in TABLES.iter().flat_map(|table| table.iter()) {
            let reads = route.verb == Method::GET;
            assert!(!(reads && route.method.audited), "{route:?}");
        }
    }
}
