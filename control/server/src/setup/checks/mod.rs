//! The checks of the host before anything is written: clock, disk, addresses, certificate.
//!
//! Each file measures in one function and judges the measured value in another one without I/O.

mod addresses;
mod certificate;
mod clock;
mod disk;

use std::path::Path;

use proto_types::Timestamp;

use super::finding::{FindingGrade, SetupFinding};
use crate::args::SetupCheck;
use crate::config::Config;
use crate::guarded_dir::FileOwner;

/// Makes every check of a host that runs a node with this configuration.
/// `reader` is the user that the service runs as, if it is not the caller.
pub(super) async fn run(
    config: &Config,
    reader: Option<FileOwner>,
    now: Timestamp,
) -> Vec<SetupFinding> {
    let mut findings = vec![clock::judge(&clock::measure(now).await)];
    findings.extend(config.data_dir.as_deref().map_or_else(Vec::new, disk_of));
    findings.extend(addresses::check(config).await);
    findings.extend(certificate::check(config.tls.as_ref(), reader, now));
    findings
}

fn disk_of(data_dir: &Path) -> Vec<SetupFinding> {
    match disk::measure(data_dir) {
        Ok(facts) => disk::judge(&facts),
        Err(error) => {
            let found = format!("{}: {error:#}", data_dir.display());
            let remedy = "name a directory that this user may create and write, or run as root";
            vec![SetupFinding::ok(SetupCheck::Disk, "data_dir", found).fail(remedy)]
        }
    }
}

/// The findings that refuse the set-up: those that fail, unless their check is accepted.
pub(super) fn refusals<'a>(
    findings: &'a [SetupFinding],
    accepted: &[SetupCheck],
) -> Vec<&'a SetupFinding> {
    let is_refusal = |finding: &&SetupFinding| {
        finding.grade == FindingGrade::Fail && !accepted.contains(&finding.check)
    };
    findings.iter().filter(is_refusal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_refuses_unless_it_is_accepted() {
        let disk = SetupFinding::ok(SetupCheck::Disk, "data_dir", "on nfs".to_owned());
        let clock = SetupFinding::ok(SetupCheck::Clock, "clock", "off".to_owned());
        let findings = [disk.fail("move it"), clock.warn("set it")];
        for (accepted, expected) in [
            (&[][..], 1),
            (&[SetupCheck::Clock], 1),
            (&[SetupCheck::Disk], 0),
        ] {
            assert_eq!(
                refusals(&findings, accepted).len(),
                expected,
                "{accepted:?}"
            );
        }
    }
}
