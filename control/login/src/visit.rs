//! One request of a browser.

use std::net::IpAddr;

use http::HeaderMap;

/// The parts of a request that a login reads.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// Fields of the query or of the form, in their order.
    pub(crate) fields: Vec<(String, String)>,
    /// Address of the client; unspecified (0.0.0.0) if it is not known.
    pub(crate) caller: IpAddr,
}

impl Visit<'_> {
    /// The first field of this name. Empty means that there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let mut named = self.fields.iter().filter(|(field, _)| field == name);
        named.next().map_or("", |(_, value)| value)
    }
}
