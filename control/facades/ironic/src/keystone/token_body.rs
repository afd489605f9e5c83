//! The JSON of tokens and of the version.

use proto_types::Timestamp;
use serde_json::{Value, json};

use super::catalog::catalog;
use crate::access::{FacadeCaller, FacadeScope};
use crate::view::{links, time};

/// The version document, `GET /v3`.
pub(super) fn version(base: &str) -> Value {
    json!({
        "version": {
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "links": links(&format!("{base}/v3/")),
            "media-types": [{
                "base": "application/json",
                "type": "application/vnd.openstack.identity-v3+json",
            }],
        },
    })
}

/// A token of a caller in its scope. `method` is the way in which it authenticated.
pub(super) fn token(caller: &FacadeCaller, method: &str, base: &str) -> Value {
    let bearer = &caller.bearer;
    let (user, id): (&str, &str) = (&bearer.principal.user, &bearer.principal.token);
    let roles = caller.role.names().iter();
    let roles: Vec<Value> = roles
        .map(|role| json!({ "id": role, "name": role }))
        .collect();
    let mut token = json!({
        "methods": [method],
        "user": {
            "id": user,
            "name": user,
            "domain": domain(),
            "password_expires_at": null,
        },
        "audit_ids": [id],
        "issued_at": utc(bearer.issued),
        "expires_at": utc(bearer.expires),
        "roles": roles,
        "is_domain": false,
        "catalog": catalog(base),
    });
    match caller.scope {
        FacadeScope::System => token["system"] = json!({ "all": true }),
        FacadeScope::Project(project) => {
            token["project"] = json!({
                "id": project.to_string(),
                "name": caller.project_name,
                "domain": domain(),
            });
        }
    }
    json!({ "token": token })
}

/// The one domain.
fn domain() -> Value {
    json!({ "id": "default", "name": "Default" })
}

/// A time as Keystone writes it.
fn utc(at: Timestamp) -> Value {
    match time(at).as_str() {
        Some(text) => text.replace("+00:00", "Z").into(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_end_with_their_zone() {
        let at = Timestamp::from_ms(1_795_224_773_548);
        assert_eq!(utc(at), "2026-11-21T01:32:53.548000Z");
    }

    #[test]
    fn the_version_names_its_address() {
        let shown = version("http://c");
        assert_eq!(shown["version"]["links"][0]["href"], "http://c/v3/");
    }
}
