//! The standing of an agent beside the release of a rollout, from what it reports.

use crate::rollout::entity::AgentRelease;
use crate::rollout::judged::AgentStanding;

/// Phase of an agent that runs the release that it was told of.
const CURRENT: &str = "current";
/// Phase of one that does not replace its program.
const OFF: &str = "off";
/// Phase of one that went back to its earlier program, and does not try the release again.
const REFUSED: &str = "refused";

/// The report of an agent about its program. Fields are `None` or empty before its first report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReportedProgram<'a> {
    /// Version that runs.
    pub(super) version: Option<&'a str>,
    /// Phase of its self-update.
    pub(super) phase: &'a str,
    /// Version that it was told of.
    pub(super) wanted: Option<&'a str>,
    /// The reason of a failure.
    pub(super) error: Option<&'a str>,
}

impl ReportedProgram<'_> {
    /// The standing. `ailment` is the reason why the agent is not healthy.
    pub(super) fn standing(
        &self,
        release: &AgentRelease,
        ailment: Option<String>,
    ) -> AgentStanding {
        if self.phase == OFF {
            let error = self.error.unwrap_or("it is not configured");
            return AgentStanding::Refused(format!("its self-update is off: {error}"));
        }
        let is_told = self.wanted == Some(release.version.as_str());
        if is_told && self.phase == REFUSED {
            let error = self.error.unwrap_or("it did not confirm itself");
            return AgentStanding::Refused(format!("it went back to its earlier program: {error}"));
        }
        if let Some(ailment) = ailment {
            return AgentStanding::OnTheWay(ailment);
        }
        if is_told && self.phase == CURRENT && self.version == Some(release.version.as_str()) {
            return AgentStanding::Settled;
        }
        AgentStanding::OnTheWay(self.progress())
    }

    /// How far the agent is, in words.
    fn progress(&self) -> String {
        let runs = self.version.unwrap_or("an unknown version");
        let phase = match self.phase {
            "" => "not reported",
            phase => phase,
        };
        let error = self
            .error
            .map_or_else(String::new, |error| format!(": {error}"));
        format!("it runs {runs}, its self-update is {phase}{error}")
    }
}

#[cfg(test)]
mod tests {
    use proto_types::Digest;

    use super::*;

    #[test]
    fn an_agent_settles_when_it_runs_what_it_was_told_of() {
        let release = AgentRelease {
            version: "1.3.0".into(),
            url: "https://releases.example.com/x".into(),
            head_digest: Digest::sha256([1; 32]),
        };
        let (new, old) = (Some("1.3.0"), Some("1.2.0"));
        for (version, phase, wanted, ailment, begin) in [
            (new, CURRENT, new, None, ""),
            (new, CURRENT, new, Some("silent"), "on the way: silent"),
            (old, CURRENT, new, None, "on the way: it runs 1.2.0"),
            (new, CURRENT, old, None, "on the way: it runs 1.3.0"),
            (new, "trial", new, None, "on the way: it runs 1.3.0"),
            (old, REFUSED, new, None, "refused: it went back"),
            // The refusal of an earlier release.
            (old, REFUSED, old, None, "on the way: it runs 1.2.0"),
            (old, OFF, None, None, "refused: its self-update is off"),
            (None, "", None, None, "on the way: it runs an unknown"),
        ] {
            let reported = ReportedProgram {
                version,
                phase,
                wanted,
                error: None,
            };
            let found = match reported.standing(&release, ailment.map(str::to_owned)) {
                AgentStanding::Settled => String::new(),
                AgentStanding::OnTheWay(reason) => format!("on the way: {reason}"),
                AgentStanding::Refused(reason) => format!("refused: {reason}"),
            };
            let is_expected = found.starts_with(begin) && found.is_empty() == begin.is_empty();
            assert!(is_expected, "{phase} {wanted:?}: {found}");
        }
    }
}
