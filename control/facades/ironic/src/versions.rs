//! The discovery of versions, which needs no token.

use serde_json::{Value, json};

use crate::version::{ApiVersion, NEWEST, OLDEST};
use crate::view::{link, links};

/// Objects of which the root of version 1 has links.
const RESOURCES: [&str; 13] = [
    "allocations",
    "chassis",
    "conductors",
    "deploy_templates",
    "drivers",
    "inspection_rules",
    "nodes",
    "portgroups",
    "ports",
    "runbooks",
    "shards",
    "volume",
    "events",
];

/// The answer to a path that tells of versions. `None` means that it is another path.
pub(crate) fn discovery(path: &str, base: &str) -> Option<Value> {
    match path.trim_end_matches('/') {
        "" => Some(json!({
            "name": "OpenStack Ironic API",
            "description": "Bare metal of metalmesh, by Ironic's API.",
            "default_version": version(base),
            "versions": [version(base)],
        })),
        "/v1" => Some(version_one(base)),
        _ => None,
    }
}

fn version(base: &str) -> Value {
    json!({
        "id": "v1",
        "links": links(&format!("{base}/v1/")),
        "status": "CURRENT",
        "min_version": ApiVersion::of(OLDEST).text(),
        "version": ApiVersion::of(NEWEST).text(),
    })
}

fn version_one(base: &str) -> Value {
    let mut root = json!({
        "id": "v1",
        "links": links(&format!("{base}/v1/")),
        "media_types": [{
            "base": "application/json",
            "type": "application/vnd.openstack.ironic.v1+json",
        }],
        "version": version(base),
    });
    for name in RESOURCES {
        let address = format!("{base}/v1/{name}/");
        let bookmark = format!("{base}/{name}/");
        root[name] = json!([link(&address, "self"), link(&bookmark, "bookmark")]);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_roots_name_the_range() {
        let root = discovery("/", "http://c").unwrap();
        assert_eq!(root["versions"][0]["version"], "1.115");
        assert_eq!(root["versions"][0]["min_version"], "1.1");
        let one = discovery("/v1/", "http://c").unwrap();
        assert_eq!(one["nodes"][0]["href"], "http://c/v1/nodes/");
        assert_eq!(one["version"]["version"], "1.115");
        assert!(discovery("/v1/nodes", "http://c").is_none());
    }
}
