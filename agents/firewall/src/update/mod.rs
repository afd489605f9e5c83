//! Self-update of this agent: what [`agents_update`] asks of it.
//!
//! The source of the controller `firewall` names a version and a place. Keys come from the
//! configuration file, and from the file beside it.
//!
//! Invariants:
//! - A new program counts as good once its rules are in force and its source answers.
//! - A release on trial starts only while the configuration enables self-update, trusts its key and, if
//!   it names releases itself, names this one; one that has confirmed itself while a key of the
//!   configuration has signed it (`trust`).
//! - Rules stay in the kernel while one program replaces another.

mod trust;
mod view;

use std::path::Path;

use agents_update::{ReleaseFields, UpdatingProgram};

pub(crate) use view::UpdateView;

/// This program, as its releases and its sources name it.
pub const PROGRAM: UpdatingProgram = UpdatingProgram {
    name: "metalmesh-firewall",
    fields: RELEASE_FIELDS,
    unhealthy: "its rules were not in force, or its source did not answer,",
};

/// Names of the fields of a source that name a release.
pub const RELEASE_FIELDS: ReleaseFields = ReleaseFields {
    version: "controllerVersion",
    url: "controllerURL",
    digest: "controllerDigest",
};

/// Becomes the program that the record of updates names. Returns if that is this one, or if anything
/// is in the way. `config` is the configuration file.
pub fn hand_over(state_dir: &Path, config: &Path) {
    agents_update::hand_over(state_dir, &trust::FileTrust(config));
}
