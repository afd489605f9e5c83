//! The services that a token names: this listener serves all of them.

use serde_json::{Value, json};

/// The region of every endpoint.
const REGION: &str = "RegionOne";
/// Type and name of each service, and the path of its endpoints.
const SERVICES: [(&str, &str, &str); 3] = [
    ("baremetal", "ironic", ""),
    ("identity", "keystone", "/v3"),
    ("network", "neutron", "/v2.0"),
];

/// The catalogue.
pub(super) fn catalog(base: &str) -> Value {
    let services = SERVICES.iter().map(|(kind, name, path)| {
        let endpoints = ["public", "internal", "admin"].map(|interface| {
            json!({
                "id": format!("{kind}-{interface}"),
                "interface": interface,
                "region": REGION,
                "region_id": REGION,
                "url": format!("{base}{path}"),
            })
        });
        json!({ "id": kind, "type": kind, "name": name, "endpoints": endpoints })
    });
    services.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_found_by_type_and_interface() {
        let services = catalog("http://c");
        let urls: Vec<&str> = services
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|service| service["endpoints"][0]["url"].as_str())
            .collect();
        assert_eq!(urls, ["http://c", "http://c/v3", "http://c/v2.0"]);
        assert_eq!(services[0]["endpoints"][2]["interface"], "admin");
    }
}
