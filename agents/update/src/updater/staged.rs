//! Releases that were fetched.

use tracing::{error, info};

use super::SelfUpdate;
use crate::host::UpdateHost;
use crate::program::StoredProgram;
use crate::stage::{HeadRules, StagedRelease};
use crate::wanted::WantedRelease;

impl SelfUpdate {
    /// Takes the result of a fetch. `true` if a new program is to be tried.
    pub(super) fn take_staged(
        &mut self,
        host: &impl UpdateHost,
        wanted: Option<&WantedRelease>,
    ) -> bool {
        let Some(ended) = self.tasks.try_join_next() else {
            return false;
        };
        let now = self.started.elapsed();
        let (fetched, result) = match ended {
            Ok(ended) => ended,
            Err(problem) => {
                error!(error = %problem, "a part of self-update failed");
                self.machine.fetch_failed(now);
                return false;
            }
        };
        if !self.machine.takes(&fetched, wanted) {
            if let Ok(staged) = &result {
                self.discard(staged);
            }
            return false;
        }
        let tried = result.and_then(|staged| self.try_release(&fetched, &staged, host));
        match tried {
            Ok(is_tried) => is_tried,
            Err(problem) => {
                let version = &fetched.version;
                error!(%version, error = problem, "a release of this program is not used");
                self.failures = self.failures.saturating_add(1);
                self.fetch_error = Some((fetched, problem));
                self.machine.fetch_failed(now);
                false
            }
        }
    }

    /// Removes the program of a release, if one was stored for it.
    fn discard(&self, staged: &StagedRelease) {
        if let Some(program) = &staged.program {
            self.files.discard(program);
        }
    }

    /// Takes a release that was fetched. `true` if its program is to be tried, `false` if it runs.
    fn try_release(
        &mut self,
        wanted: &WantedRelease,
        staged: &StagedRelease,
        host: &impl UpdateHost,
    ) -> Result<bool, String> {
        let Some(program) = &staged.program else {
            self.recognize(wanted, &staged.head);
            return Ok(false);
        };
        let settings = host
            .settings()
            .ok_or("configuration: the file is not valid any more")?;
        let rules = HeadRules {
            program: &self.program,
            wanted,
            running: self.machine.running(),
            settings: &settings,
        };
        // The key, or the validity, may have ended during the fetch.
        if let Err(problem) = rules.verify(&staged.head) {
            self.discard(staged);
            return Err(problem);
        }
        self.try_program(program, &staged.head, host)?;
        Ok(true)
    }

    /// Takes note that the program that runs is the one of the wanted release.
    fn recognize(&mut self, wanted: &WantedRelease, head: &[u8]) {
        let version = &wanted.version;
        info!(%version, "the program that runs is the one of the wanted release");
        let digest = &wanted.head_digest;
        let role = self.machine.role();
        self.record.recognize(role, head, digest.clone());
        self.machine.recognize(digest.clone());
        self.fetch_error = None;
        // Without it the head is fetched once more after the next start.
        self.keep_record();
    }

    /// Writes that a program is tried at the next start.
    fn try_program(
        &mut self,
        program: &StoredProgram,
        head: &[u8],
        host: &impl UpdateHost,
    ) -> Result<(), String> {
        let version = &program.version;
        // The new program may write its files in a way that this one does not read.
        host.keep_before_update()
            .map_err(|problem| format!("disk: {problem}; make room"))?;
        let mut record = self.record.clone();
        record.begin_trial(program.clone(), head);
        self.files
            .keep(&record)
            .map_err(|problem| format!("disk: {problem:#}; make room"))?;
        self.record = record;
        info!(%version, "ending, so that a new program takes this one's place");
        Ok(())
    }
}
