//! Findings, the catalogue of checks, and the report.

use std::fmt;

use serde_json::{Value, json};

use super::facts::DoctorFacts;
use super::level::FindingLevel;
use super::{audit, cluster, firewalls, fleet, local};

/// Page that explains the checks.
const DOC: &str = "docs/reference/doctor.md";
/// Most findings of one check that are listed; one more line counts the rest.
pub(super) const TOLD_MAX: usize = 20;

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DoctorFinding {
    pub(super) level: FindingLevel,
    pub(super) what: String,
    /// Its consequence. Empty means no problem.
    pub(super) why: String,
    /// The command that mends it or shows more. Empty means no problem.
    pub(super) mend: String,
}

impl DoctorFinding {
    pub(super) fn ok(what: impl Into<String>) -> Self {
        Self {
            level: FindingLevel::Ok,
            what: what.into(),
            why: String::new(),
            mend: String::new(),
        }
    }

    pub(super) fn warn(what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self {
            level: FindingLevel::Warn,
            what: what.into(),
            why: why.to_owned(),
            mend: mend.into(),
        }
    }

    pub(super) fn fail(what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self {
            level: FindingLevel::Fail,
            ..Self::warn(what, why, mend)
        }
    }

    /// A finding of the given level.
    pub(super) fn graded(
        level: FindingLevel,
        what: impl Into<String>,
        why: &str,
        mend: impl Into<String>,
    ) -> Self {
        match level {
            FindingLevel::Ok => Self::ok(what),
            FindingLevel::Warn => Self::warn(what, why, mend),
            FindingLevel::Fail => Self::fail(what, why, mend),
        }
    }

    /// A warning that a fact is unknown.
    pub(super) fn unknown(what: &str, error: &str) -> Self {
        let mend = "metalmesh doctor --only api";
        Self::warn(format!("{what} is not known"), error, mend)
    }
}

/// A check of the catalogue.
pub(super) struct DoctorCheck {
    /// Its name, which `--only` and `--omit` take.
    pub(super) code: &'static str,
    run: fn(&DoctorFacts) -> Vec<DoctorFinding>,
}

/// All checks, in the order of the report.
pub(super) const CHECKS: [DoctorCheck; 22] = [
    check("context-file", local::context_file),
    check("key-files", local::key_files),
    check("api", local::api),
    check("api-certificate", local::api_certificate),
    check("mesh", local::mesh),
    check("clock", local::clock),
    check("cluster-time", cluster::time),
    check("nodes-asked", cluster::nodes_asked),
    check("leader", cluster::leader),
    check("quorum", cluster::quorum),
    check("lag", cluster::lag),
    check("versions", cluster::versions),
    check("log-sync", cluster::log_sync),
    check("disk", cluster::disk),
    check("snapshot", cluster::snapshot),
    check("backup", cluster::backup),
    check("authority", cluster::authority),
    check("audit-exports", audit::exports),
    check("partitions", fleet::partitions),
    check("agents", fleet::agents),
    check("machines", fleet::machines),
    check("firewalls", firewalls::firewalls),
];

const fn check(code: &'static str, run: fn(&DoctorFacts) -> Vec<DoctorFinding>) -> DoctorCheck {
    DoctorCheck { code, run }
}

/// A line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportLine {
    pub(super) code: &'static str,
    pub(super) found: DoctorFinding,
}

impl ReportLine {
    pub(super) fn json(&self) -> Value {
        json!({
            "level": self.found.level.to_string(),
            "code": self.code,
            "what": self.found.what,
            "why": self.found.why,
            "mend": self.found.mend,
            "doc": format!("{DOC}#{}", self.code),
        })
    }
}

impl fmt::Display for ReportLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DoctorFinding {
            level,
            what,
            why,
            mend,
        } = &self.found;
        write!(f, "{level:<4} {:<15} {what}", self.code)?;
        for more in [why, mend] {
            if !more.is_empty() {
                write!(f, " — {more}")?;
            }
        }
        Ok(())
    }
}

/// `true` if a check is selected by `--only` and `--omit`.
pub(super) fn is_wanted(code: &str, only: &[String], omit: &[String]) -> bool {
    (only.is_empty() || only.iter().any(|listed| listed == code))
        && !omit.iter().any(|listed| listed == code)
}

/// Runs the selected checks over the facts. Each check gives at least one line.
pub(super) fn report(facts: &DoctorFacts, only: &[String], omit: &[String]) -> Vec<ReportLine> {
    let wanted = CHECKS
        .iter()
        .filter(|check| is_wanted(check.code, only, omit));
    let lines = wanted.flat_map(|check| {
        let mut found = (check.run)(facts);
        let more = found.len().saturating_sub(TOLD_MAX);
        found.truncate(TOLD_MAX);
        if more > 0 {
            let worst = found.iter().map(|finding| finding.level).max();
            found.push(DoctorFinding {
                level: worst.unwrap_or(FindingLevel::Warn),
                ..DoctorFinding::ok(format!("and {more} more"))
            });
        }
        let code = check.code;
        found
            .into_iter()
            .map(move |found| ReportLine { code, found })
    });
    lines.collect()
}

/// The worst level of a report.
pub(super) fn worst(lines: &[ReportLine]) -> FindingLevel {
    let levels = lines.iter().map(|line| line.found.level);
    levels.max().unwrap_or(FindingLevel::Ok)
}
