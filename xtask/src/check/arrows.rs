//! Which crate may depend on which: the arrows of ARCHITECTURE.md, as data.

use super::Findings;
use super::metadata::{Metadata, Package};

/// A crate (or a folder of crates) and what of ours it may depend on.
/// A crate that is not listed may depend on nothing of ours.
const ARROWS: &[(&str, &[&str])] = &[
    ("proto-types", &[]),
    ("proto-bounds", &[]),
    ("proto-firewall", &[]),
    ("proto-wire-dhcp", &["proto-types"]),
    ("proto-wire-lldp", &[]),
    ("proto-wire-tftp", &[]),
    ("proto-errors", &["proto-types"]),
    ("proto-identity", &["proto-types"]),
    (
        "proto-link",
        &[
            "base-runtime",
            "proto-types",
            "proto-bounds",
            "proto-errors",
            "proto-identity",
        ],
    ),
    (
        "proto-mesh",
        &[
            "proto-types",
            "proto-errors",
            "proto-identity",
            "proto-link",
        ],
    ),
    ("proto-public", &["proto-types"]),
    ("base-runtime", &["proto-types", "proto-errors"]),
    (
        "base-telemetry",
        &["proto-types", "proto-bounds", "proto-errors"],
    ),
    (
        "control-state",
        &["proto-types", "proto-errors", "proto-firewall"],
    ),
    (
        "control-authz",
        &["proto-types", "proto-errors", "proto-public"],
    ),
    (
        "control-policy",
        &["proto-errors", "proto-public", "control-authz"],
    ),
    ("control-oslo", &["proto-bounds"]),
    (
        "control-store",
        &[
            "proto-types",
            "proto-errors",
            "control-state",
            "control-authz",
        ],
    ),
    ("proto-backup", &[]),
    ("proto-release", &["proto-types"]),
    ("control-backup", &["proto-*", "control-store"]),
    ("control-vpn", &["proto-types"]),
    (
        "control-pki",
        &["proto-*", "control-state", "control-store", "control-authz"],
    ),
    (
        "control-peers",
        &["proto-*", "control-state", "control-store", "control-pki"],
    ),
    (
        "control-presence",
        &["proto-*", "control-state", "control-store"],
    ),
    (
        "control-gateway",
        &[
            "base-*",
            "proto-*",
            "control-state",
            "control-store",
            "control-authz",
            "control-pki",
            "control-presence",
        ],
    ),
    ("control-front", &["base-*", "proto-*"]),
    (
        "control-gate",
        &[
            "proto-*",
            "control-front",
            "control-state",
            "control-store",
            "control-authz",
            "control-policy",
            "control-pki",
        ],
    ),
    (
        "control-convert",
        &[
            "proto-*",
            "control-front",
            "control-gate",
            "control-state",
            "control-pki",
        ],
    ),
    (
        "control-login",
        &[
            "proto-*",
            "base-*",
            "control-front",
            "control-gate",
            "control-state",
            "control-store",
            "control-authz",
            "control-pki",
        ],
    ),
    (
        "control-watch",
        &[
            "proto-*",
            "control-gate",
            "control-convert",
            "control-state",
            "control-store",
            "control-authz",
        ],
    ),
    (
        "control-api",
        &[
            "proto-*",
            "base-*",
            "control-front",
            "control-gate",
            "control-convert",
            "control-watch",
            "control-presence",
            "control-backup",
            "control-vpn",
            "control-state",
            "control-store",
            "control-authz",
            "control-pki",
            "control-policy",
        ],
    ),
    (
        "control-upstream",
        &[
            "proto-*",
            "control-front",
            "control-gate",
            "control-convert",
            "control-presence",
            "control-state",
            "control-store",
            "control-authz",
            "control-pki",
        ],
    ),
    (
        "control-facades-*",
        &[
            "proto-*",
            "control-front",
            "control-gate",
            "control-oslo",
            "control-state",
            "control-authz",
        ],
    ),
    (
        "control-duties",
        &[
            "proto-*",
            "base-*",
            "control-presence",
            "control-backup",
            "control-vpn",
            "control-state",
            "control-store",
            "control-authz",
        ],
    ),
    (
        "control-client",
        &[
            "proto-bounds",
            "proto-public",
            "proto-types",
            "proto-errors",
        ],
    ),
    (
        "control-ctl",
        &[
            "base-runtime",
            "proto-bounds",
            "proto-backup",
            "proto-release",
            "control-client",
            "control-oslo",
            "control-policy",
            "proto-public",
            "proto-types",
            "proto-errors",
        ],
    ),
    ("base-outbound", &["base-runtime"]),
    ("control-server", &["base-*", "control-*", "proto-*"]),
    ("agents-kit", &["base-*", "proto-*"]),
    (
        "agents-nos",
        &[
            "agents-router-macs",
            "base-*",
            "proto-types",
            "proto-wire-lldp",
        ],
    ),
    ("agents-router-macs", &[]),
    ("agents-update", &["agents-kit", "base-*", "proto-*"]),
    (
        "agents-core",
        &[
            "agents-kit",
            "agents-nos",
            "agents-update",
            "base-*",
            "proto-*",
        ],
    ),
    (
        "agents-firewall",
        &[
            "agents-kit",
            "agents-router-macs",
            "agents-update",
            "base-*",
            "proto-*",
        ],
    ),
    ("agents-hammer", &["agents-kit", "base-*", "proto-*"]),
    ("bmc-ipmi", &[]),
    ("bmc-redfish", &["proto-identity"]),
    (
        "bmc-agent",
        &["agents-kit", "agents-update", "base-*", "bmc-*", "proto-*"],
    ),
    ("pixie-boot", &["proto-types", "proto-wire-dhcp"]),
    (
        "pixie-server",
        &[
            "agents-kit",
            "agents-update",
            "base-*",
            "pixie-*",
            "proto-*",
        ],
    ),
    ("tests-*", &["*"]),
    ("xtask", &["tests-*"]),
];

/// What the pure core must never know: a runtime, a disk, a clock, randomness.
const STATE_NEVER: &[&str] = &["tokio", "rocksdb", "openraft", "rand", "quinn", "tonic"];

pub(crate) fn check(metadata: &Metadata) -> Findings {
    metadata.ours().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Findings {
    let mut findings = Findings::new();
    for dependency in &package.dependencies {
        // Tests may reach for peers that the code itself must not know.
        if dependency.kind.as_deref() == Some("dev") {
            continue;
        }
        if dependency.path.is_some() && !allowed(&package.name, &dependency.name) {
            findings.push(format!(
                "{} depends on {}: no such arrow in ARCHITECTURE.md; move the shared type down, \
                 or add the arrow with an ADR",
                package.name, dependency.name
            ));
        }
        if package.name == "control-state" && STATE_NEVER.contains(&dependency.name.as_str()) {
            findings.push(format!(
                "control-state is pure: it must not know {}",
                dependency.name
            ));
        }
    }
    findings
}

/// Where crates are that stand in for published ones, called as those are.
const PATCHES: &str = "patches";

/// A crate is called after its folder, and says in one line what it is.
pub(crate) fn check_names(metadata: &Metadata) -> Findings {
    let mut findings = Findings::new();
    for package in metadata.ours() {
        let folder = metadata.folder(package);
        let called = folder.strip_prefix(PATCHES).unwrap_or(folder);
        let name = called.to_string_lossy().replace('/', "-");
        if package.name != name {
            findings.push(format!(
                "{}: the crate is called {}, its folder says {name}",
                folder.display(),
                package.name
            ));
        }
        if !package.can_run() {
            findings.push(format!(
                "{}: it has several programs; say in its manifest which one `cargo run` starts: \
                 default-run",
                folder.display()
            ));
        }
        if package.description.as_deref().is_none_or(str::is_empty) {
            findings.push(format!(
                "{}: its manifest has no description",
                folder.display()
            ));
        }
    }
    findings
}

fn allowed(from: &str, to: &str) -> bool {
    ARROWS
        .iter()
        .filter(|(pattern, _)| matches(pattern, from))
        .any(|(_, targets)| targets.iter().any(|pattern| matches(pattern, to)))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn arrows_point_down() {
        for (from, to, want) in [
            ("control-api", "control-store", true),
            ("control-front", "control-state", false),
            ("control-gate", "control-front", true),
            ("control-upstream", "control-api", false),
            ("control-facades-ironic", "control-gate", true),
            ("control-facades-ironic", "control-store", false),
            ("control-facades-ironic", "control-api", false),
            ("control-duties", "control-gateway", false),
            ("control-ctl", "control-backup", false),
            ("control-state", "proto-types", true),
            ("control-state", "control-store", false),
            ("agents-core", "agents-kit", true),
            ("agents-core", "control-state", false),
            ("proto-public", "control-state", false),
            ("tests-lab", "agents-nos", true),
        ] {
            assert_eq!(allowed(from, to), want, "{from} -> {to}");
        }
    }
}
