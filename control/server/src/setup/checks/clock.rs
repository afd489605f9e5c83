//! The clock of this host: is it synchronised, and by what?
//!
//! The state of the kernel (adjtimex) is asked through timedatectl, which reads it; chrony is asked
//! first, because it also knows how far the clock is off.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use proto_types::Timestamp;
use tokio::process::Command;

use crate::args::SetupCheck;
use crate::setup::finding::SetupFinding;

/// Longest run of a program that is asked about the clock. One that hangs is not believed.
const PROGRAM_MAX: Duration = Duration::from_secs(3);
/// Marks a clock that systemd-timesyncd has set since the start of the system.
const TIMESYNCD_MARK: &str = "/run/systemd/timesync/synchronized";
/// 2026-01-01, before this check was written: a clock that shows less was never set.
const EARLIEST: Timestamp = Timestamp::from_ms(1_767_225_600_000);
/// Offset from which a synchronised clock is doubted, seconds. Agents and nodes refuse certificates
/// of a clock that is minutes off.
const OFFSET_MAX_S: f64 = 1.0;
const REMEDY: &str = "install chrony (apt-get install chrony) or enable systemd-timesyncd, and \
                      wait until `chronyc tracking` or `timedatectl` reports it synchronised";

/// The state of the clock.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClockFacts {
    pub(super) now: Timestamp,
    /// `None` means that no program knows.
    pub(super) is_synchronised: Option<bool>,
    /// The program that knows.
    pub(super) by: &'static str,
    /// Offset, seconds. `None` means unknown.
    pub(super) offset_s: Option<f64>,
}

/// Asks the programs that may know, one after the other.
pub(super) async fn measure(now: Timestamp) -> ClockFacts {
    let unknown = ClockFacts {
        now,
        is_synchronised: None,
        by: "",
        offset_s: None,
    };
    if let Some(text) = output("chronyc", &["-n", "-c", "tracking"]).await
        && let Some(facts) = chrony(&text, now)
    {
        return facts;
    }
    let shown = output(
        "timedatectl",
        &["show", "--property=NTPSynchronized", "--value"],
    )
    .await;
    let is_marked = Path::new(TIMESYNCD_MARK).exists();
    match shown.as_deref().map(str::trim) {
        Some("yes") => ClockFacts {
            is_synchronised: Some(true),
            by: "the kernel, by timedatectl",
            ..unknown
        },
        _ if is_marked => ClockFacts {
            is_synchronised: Some(true),
            by: "systemd-timesyncd",
            ..unknown
        },
        Some("no") => ClockFacts {
            is_synchronised: Some(false),
            by: "the kernel, by timedatectl",
            ..unknown
        },
        _ => unknown,
    }
}

/// The output of a program that succeeds in time.
async fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PROGRAM_MAX, command.output()).await;
    let output = output.ok()?.ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    String::from_utf8(text).ok()
}

/// Reads `chronyc -n -c tracking`: the fifth field is the offset in seconds, the last one the leap
/// status.
fn chrony(text: &str, now: Timestamp) -> Option<ClockFacts> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let (offset, leap) = (fields.get(4)?, fields.last()?);
    Some(ClockFacts {
        now,
        is_synchronised: Some(*leap != "Not synchronised"),
        by: "chrony",
        offset_s: offset
            .parse()
            .ok()
            .filter(|offset: &f64| offset.is_finite()),
    })
}

/// Judges the state of the clock.
pub(super) fn judge(facts: &ClockFacts) -> SetupFinding {
    let finding = |found: String| SetupFinding::ok(SetupCheck::Clock, "clock", found);
    if facts.now < EARLIEST {
        let found = format!(
            "shows {} s since 1970, before this program was made",
            facts.now.ms() / 1000
        );
        return finding(found).fail("set it (timedatectl set-time), and synchronise it");
    }
    let by = facts.by;
    match (facts.is_synchronised, facts.offset_s) {
        (Some(true), Some(offset)) if offset.abs() > OFFSET_MAX_S => {
            let found = format!("{by} knows it {offset:.3} s off, more than {OFFSET_MAX_S} s");
            finding(found).warn("wait until it is set, or step it: chronyc makestep")
        }
        (Some(true), Some(offset)) => finding(format!(
            "synchronised by {by}, {:.3} ms off",
            offset * 1000.0
        )),
        (Some(true), None) => finding(format!("synchronised, says {by}")),
        (Some(false), _) => finding(format!("not synchronised, says {by}")).warn(REMEDY),
        (None, _) => {
            let found = "neither chronyc nor timedatectl says that it is synchronised".to_owned();
            finding(found).warn(REMEDY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::finding::FindingGrade::{self, Fail, Ok, Warn};

    #[test]
    fn clocks_are_judged() {
        let (now, old) = (EARLIEST.plus_ms(1), Timestamp::from_ms(1000));
        for (now, is_synchronised, offset_s, expected, said) in [
            (now, Some(true), Some(0.0002), Ok, "0.200 ms off"),
            (now, Some(true), Some(-1.5), Warn, "-1.500 s off"),
            (now, Some(true), None, Ok, "synchronised"),
            (now, Some(false), None, Warn, "not synchronised"),
            (now, None, None, Warn, "neither chronyc"),
            (old, Some(true), Some(0.0), Fail, "since 1970"),
        ] {
            let facts = ClockFacts {
                now,
                is_synchronised,
                by: "chrony",
                offset_s,
            };
            let judged = judge(&facts);
            let grade: FindingGrade = judged.grade;
            assert_eq!(grade, expected, "{facts:?}");
            assert!(judged.found.contains(said), "{judged:?}");
            assert_eq!(judged.remedy.is_empty(), expected == Ok, "{judged:?}");
        }
    }

    #[test]
    fn chrony_is_read() {
        let good = "C0A80001,192.168.0.1,3,1793491300.12,0.000012,0.0,0.0,1.5,0.0,0.1,0.01,0.02,64.2,Normal\n";
        let facts = chrony(good, EARLIEST).unwrap();
        assert_eq!(
            (facts.is_synchronised, facts.offset_s),
            (Some(true), Some(0.000_012))
        );
        let bad = "00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n";
        assert_eq!(chrony(bad, EARLIEST).unwrap().is_synchronised, Some(false));
        for text in ["", "506 Cannot talk to daemon", "a,b,c"] {
            assert_eq!(chrony(text, EARLIEST), None, "{text:?}");
        }
    }
}
