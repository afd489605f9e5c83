//! Components of the published stack.

use control_state::{self as state, Tables};
use proto_public::api::v2;

use super::enums::component_kind;
use super::{duration, is, is_choice, is_opt, time, token};

/// A component for the wire, with everything that published clients dereference.
pub fn component(tables: &Tables, it: &state::Component) -> v2::Component {
    let used = tables.get::<state::Token>(&it.token);
    with_token(it, used.map(AsRef::as_ref))
}

/// As [`component`], with the token that it used last. `None` means that the token is gone.
pub fn with_token(it: &state::Component, used: Option<&state::Token>) -> v2::Component {
    v2::Component {
        uuid: it.id.to_string(),
        r#type: component_kind(it.kind),
        identifier: it.identifier.clone(),
        started_at: time(it.started_at),
        reported_at: time(it.reported_at),
        interval: Some(duration(it.interval_ms)),
        version: Some(v2::Version {
            version: it.version.version.clone(),
            revision: it.version.revision.clone(),
            git_sha1: it.version.git_sha1.clone(),
            build_date: it.version.build_date.clone(),
        }),
        token: Some(used.map(token::token).unwrap_or_default()),
        meta: Some(v2::Meta {
            created_at: time(it.created_at),
            updated_at: time(it.reported_at),
            ..v2::Meta::default()
        }),
    }
}

/// A version from the wire.
pub fn from_version(version: Option<v2::Version>) -> state::ComponentVersion {
    let version = version.unwrap_or_default();
    state::ComponentVersion {
        version: version.version,
        revision: version.revision,
        git_sha1: version.git_sha1,
        build_date: version.build_date,
    }
}

/// `true` if the query matches this component.
pub fn component_matches(it: &state::Component, query: Option<&v2::ComponentQuery>) -> bool {
    let Some(query) = query else { return true };
    is_opt(query.uuid.as_ref(), Some(&it.id))
        && is_choice(query.r#type, component_kind(it.kind))
        && is(query.identifier.as_ref(), &it.identifier)
}
