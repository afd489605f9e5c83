//! What a check says, and the catalogue of checks.

use std::fmt;

use serde_json::{Value, json};

use super::facts::Facts;
use super::{audit, cluster, fleet, local};

/// Where the checks are explained.
const DOC: &str = "docs/reference/doctor.md";
/// Findings of one check that are told one by one.
pub(super) const TOLD_MAX: usize = 20;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Works, and will not for ever.
    Warn,
    /// Does not work, or not when it will be needed.
    Fail,
}

impl Level {
    /// What the program ends with when nothing is worse.
    pub(super) const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warn => 1,
            Self::Fail => 2,
        }
    }
}

/// How bad it is that a value is so small.
pub(super) fn low<T: PartialOrd>(value: T, warn: T, fail: T) -> Level {
    match value {
        value if value < fail => Level::Fail,
        value if value < warn => Level::Warn,
        _ => Level::Ok,
    }
}

/// How bad it is that a value is so large.
pub(super) fn high<T: PartialOrd>(value: T, warn: T, fail: T) -> Level {
    match value {
        value if value >= fail => Level::Fail,
        value if value >= warn => Level::Warn,
        _ => Level::Ok,
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        })
    }
}

/// What a check found, without its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) level: Level,
    pub(super) what: String,
    /// Why that matters; empty when all is well.
    pub(super) why: String,
    /// The command that mends it, or shows more; empty when all is well.
    pub(super) mend: String,
}

impl Found {
    pub(super) fn ok(what: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            what: what.into(),
            why: String::new(),
            mend: String::new(),
        }
    }

    pub(super) fn warn(what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            what: what.into(),
            why: why.to_owned(),
            mend: mend.into(),
        }
    }

    pub(super) fn fail(what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(what, why, mend)
        }
    }

    /// As bad as it is.
    pub(super) fn graded(
        level: Level,
        what: impl Into<String>,
        why: &str,
        mend: impl Into<String>,
    ) -> Self {
        match level {
            Level::Ok => Self::ok(what),
            Level::Warn => Self::warn(what, why, mend),
            Level::Fail => Self::fail(what, why, mend),
        }
    }

    /// Nobody could be asked.
    pub(super) fn unknown(what: &str, error: &str) -> Self {
        let mend = "metalmesh doctor --only api";
        Self::warn(format!("{what} is not known"), error, mend)
    }
}

/// One check.
pub(super) struct Check {
    /// What it is called.
    pub(super) code: &'static str,
    run: fn(&Facts) -> Vec<Found>,
}

/// All checks, in the order in which they are told.
pub(super) const CHECKS: [Check; 21] = [
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
];

const fn check(code: &'static str, run: fn(&Facts) -> Vec<Found>) -> Check {
    Check { code, run }
}

/// A line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) code: &'static str,
    pub(super) found: Found,
}

impl Line {
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

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found {
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

/// Whether a check was asked for.
pub(super) fn is_wanted(code: &str, only: &[String], omit: &[String]) -> bool {
    (only.is_empty() || only.iter().any(|it| it == code)) && !omit.iter().any(|it| it == code)
}

/// The report over the facts: at least one line for each check that is wanted.
pub(super) fn report(facts: &Facts, only: &[String], omit: &[String]) -> Vec<Line> {
    let wanted = CHECKS.iter().filter(|it| is_wanted(it.code, only, omit));
    let lines = wanted.flat_map(|check| {
        let mut found = (check.run)(facts);
        let more = found.len().saturating_sub(TOLD_MAX);
        found.truncate(TOLD_MAX);
        if more > 0 {
            let worst = found.iter().map(|it| it.level).max();
            found.push(Found {
                level: worst.unwrap_or(Level::Warn),
                ..Found::ok(format!("and {more} more"))
            });
        }
        let code = check.code;
        found.into_iter().map(move |found| Line { code, found })
    });
    lines.collect()
}

/// The worst of a report.
pub(super) fn worst(lines: &[Line]) -> Level {
    let levels = lines.iter().map(|line| line.found.level);
    levels.max().unwrap_or(Level::Ok)
}
