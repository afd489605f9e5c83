//! The story that the program of each agent goes through when control names a release of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto_mesh::UpdateReport;
use proto_release::ReleaseSigner;
use tokio::time::{Instant, interval};

use super::{AUTHORITY, ReleaseServer, Supervised, Updates};

/// A new program is fetched, asked about the configuration, and confirms itself after ten seconds.
const WAIT: Duration = Duration::from_secs(180);
/// Pause between two looks at what the agent has reported.
const POLL: Duration = Duration::from_millis(20);

/// The section `[self_update]` of a configuration: keys, and the authority of the server of releases, beside
/// it.
pub(crate) fn section() -> String {
    format!(
        "[self_update]\nkeys = \"release-keys\"\nca_certificate = \"{AUTHORITY}\"\n\
         local_prefixes = [\"127.0.0.0/8\"]\nspread_seconds = 0\n"
    )
}

/// Writes the file with the keys of releases.
pub(crate) fn install_keys(dir: &Path, text: &str) {
    let path = dir.join("release-keys");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// An agent that trusts a key, and everything that it takes to replace its program.
pub(crate) struct Story<'a> {
    /// Its name in manifests.
    pub(crate) name: &'static str,
    /// File of the installed program.
    pub(crate) program: &'static str,
    /// Its state directory.
    pub(crate) state: &'a Path,
    pub(crate) agent: &'a Supervised,
    pub(crate) updates: &'a Updates,
    pub(crate) server: &'a ReleaseServer,
    pub(crate) signer: &'a ReleaseSigner,
}

impl Story<'_> {
    /// Waits for a report of the program.
    pub(crate) async fn reported(&self, what: &str, is_it: impl Fn(&UpdateReport) -> bool) {
        let end = Instant::now() + WAIT;
        let mut ticks = interval(POLL);
        loop {
            let report = self.updates.report();
            if report.as_ref().is_some_and(&is_it) {
                return;
            }
            assert!(Instant::now() < end, "never: {what}; {report:?}");
            ticks.tick().await;
        }
    }

    /// The installed program runs and is healthy; a release of it takes its place and confirms itself.
    /// Returns the file of the program that runs then.
    pub(crate) async fn replaces_itself(&self) -> PathBuf {
        self.reported("the first program", |report| {
            report.phase == "nothing_wanted" && report.ailment.is_empty()
        })
        .await;
        let program = fs::read(self.program).unwrap();
        let new = self
            .server
            .publish(self.signer, self.name, "0.2.0", &program);
        self.updates.name_release(new.clone());
        self.reported("the new program", |report| {
            report.version == "0.2.0"
                && report.phase == "current"
                && report.wanted == "0.2.0"
                && report.head_digest == new.head_digest
                && report.ailment.is_empty()
        })
        .await;
        assert_eq!(self.agent.codes(), [Some(75)]);
        let running = self.agent.program();
        assert!(
            running.starts_with(self.state.join("programs")),
            "{running:?}"
        );
        running
    }
}
