//! Self-update of agents: a program replaces itself by a signed release, and goes back to the one before
//! if that does not work.
//!
//! The source of an agent names a version and a place ([`WantedRelease`]): control, for those that
//! follow it. The agent fetches the release, verifies it with the keys of its own files, stores the
//! program in the state directory, has it check the configuration as nobody, and writes into a record
//! ([`UpdateRecord`]) that it is tried. Then it ends. The installed program, which no update changes,
//! reads the record at every start and becomes the program that it names ([`hand_over`]).
//!
//! [`SelfUpdate`] is the part that every agent has, and [`UpdateHost`] is what it asks of the agent.
//! [`mesh_agent`] answers that for the agents of switches, BMCs and boot servers.
//!
//! Invariants:
//! - Decisions are functions of the record and of facts ([`plan_start`], [`UpdateMachine`]); each change
//!   of the record is one atomic write, and a program is whole on disk before the record names it.
//! - The installed program is never changed: whatever is missing or damaged, it starts.
//! - A release names its program: one of another agent is refused, whatever key has signed it.
//! - A release is its version and the digest of its signed head ([`ReleaseId`]): another one of the same
//!   version is another release.
//! - A release starts only while the files of the host trust a key that has signed it ([`StartTrust`]);
//!   without one the installed program is used.
//! - A new program counts as good once it does its work and its source answers. Otherwise the program
//!   before it is used again, and the release is remembered.

mod address_rule;
mod facts;
mod files;
mod hand_over;
mod host;
mod key_file;
mod location;
mod machine;
#[cfg(test)]
mod machine_tests;
pub mod mesh_agent;
mod phase;
mod probe;
mod probe_program;
mod process;
mod program;
mod reader;
mod record;
mod release_id;
mod resolver;
mod seal;
mod sealed_dir;
mod settings;
mod stage;
mod start;
#[cfg(test)]
mod start_tests;
mod start_trust;
mod status;
mod update_collector;
mod updater;
mod updating_program;
mod wanted;

use std::sync::OnceLock;

use anyhow::Context as _;
use proto_release::ReleaseVersion;

pub use address_rule::AddressRule;
pub use facts::{UpdateFacts, UpdateStep};
pub use files::UpdateFiles;
pub use hand_over::hand_over;
pub use host::UpdateHost;
pub use key_file::{RELEASE_KEYS_MAX, read_release_keys};
pub use location::ReleaseLocation;
pub use machine::{CONFIRM_AFTER, CONFIRM_WITHIN, UpdateMachine};
pub use phase::{ProgramRole, UpdatePhase};
pub use probe::{PROBE_COMMAND, ProbeJob};
pub use probe_program::{ProbeProgramArgs, probe_program};
pub use program::{InstalledProgram, StoredProgram, TrialProgram};
pub use record::{ATTEMPTS_MAX, FailedVersion, UpdateRecord};
pub use release_id::ReleaseId;
pub use seal::{SealError, StateSeal};
pub use sealed_dir::SealedDir;
pub use settings::UpdateSettings;
pub use start::{STARTS_MAX, StartPlan, after_failed_start, plan_start};
pub use start_trust::StartTrust;
pub use status::{SharedStatus, UpdateStatus};
pub use update_collector::UpdateCollector;
pub use updater::SelfUpdate;
pub use updating_program::{ReleaseFields, UpdatingProgram};
pub use wanted::WantedRelease;

/// Level of the mesh protocol that the programs of this release and their control speak: the number in
/// `proto_link::ALPN`.
pub const MESH_LEVEL: u32 = 1;
/// Exit code of an agent that ends so that another program takes its place. The service manager
/// starts it again.
pub const EXIT_FOR_UPDATE: u8 = 75;

/// Version of the program that runs, as its release calls it. Set once, at the start.
static RUNNING: OnceLock<String> = OnceLock::new();

/// Version of the program that runs: that of its release, or of the installed program.
#[must_use]
pub fn running_version() -> &'static str {
    // All programs of a build have the version of the workspace.
    RUNNING
        .get()
        .map_or(env!("CARGO_PKG_VERSION"), String::as_str)
}

/// The version that this program was built as.
///
/// # Errors
/// It is no version of a release.
fn built_version() -> anyhow::Result<ReleaseVersion> {
    let version = env!("CARGO_PKG_VERSION").parse();
    version.context("this program was built without a version")
}

#[cfg(test)]
mod tests {
    use super::MESH_LEVEL;

    #[test]
    fn the_level_is_that_of_the_protocol() {
        let name = format!("metalmesh-mesh/{MESH_LEVEL}");
        assert_eq!(proto_link::ALPN, name.as_bytes());
    }
}
