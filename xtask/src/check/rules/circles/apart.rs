//! Top-level modules of a crate that must not use each other in either direction.

use super::graph::{Graph, Place};

/// Modules of a crate, each for another audience: none of them names another one.
const APART: &[(&str, &[&str])] = &[("control-api", &["tenant", "admin", "site"])];

/// A module that uses another one of its group.
pub(super) struct Crossing {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) place: Place,
}

/// The uses that the list forbids.
pub(super) fn crossings(krate: &str, graph: &Graph) -> Vec<Crossing> {
    let mut found = Vec::new();
    for (_, group) in APART.iter().filter(|(name, _)| *name == krate) {
        for (from, targets) in &graph.edges {
            if !group.contains(&from.as_str()) {
                continue;
            }
            for (to, place) in targets {
                if group.contains(&to.as_str()) {
                    found.push(Crossing {
                        from: from.clone(),
                        to: to.clone(),
                        place: place.clone(),
                    });
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use crate::check::rules::sources;

    /// Hits in a crate whose `admin` module has this text.
    fn found(krate: &str, admin: &str) -> Vec<String> {
        let lib = "mod admin; mod resource; mod routes; mod site; mod tenant; pub use tenant::T;";
        let files = [
            ("lib.rs", lib),
            ("admin/mod.rs", "mod token;"),
            ("admin/token.rs", admin),
            ("routes.rs", "use crate::{admin, site, tenant};"),
            ("tenant.rs", "use crate::resource::R; pub struct T;"),
        ];
        let hits = find(&sources(krate, &files));
        hits.into_iter().map(|hit| hit.what).collect()
    }

    #[test]
    fn audiences_do_not_use_each_other() {
        let one = ["admin uses tenant, which is for another audience"];
        for (text, expected) in [
            ("use crate::resource::R;", &[][..]),
            ("use crate::tenant::T;", &one[..]),
            ("use super::super::tenant;", &one[..]),
            ("fn f() { crate::T; }", &one[..]),
        ] {
            assert_eq!(found("control-api", text), expected, "{text}");
        }
        assert_eq!(found("control-other", "use crate::tenant::T;"), [""; 0]);
    }
}
