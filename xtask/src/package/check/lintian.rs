//! Debian's own judgement of a package.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{CheckedDeb, Outcome};

/// Findings about the Debian archive, in which these packages are not.
const SUPPRESSED: &str = "initial-upload-closes-no-bugs,bogus-mail-host";

pub(super) fn check(debs: &[CheckedDeb]) -> Result<Outcome> {
    let mut lintian = Command::new("lintian");
    lintian
        .args(["--fail-on", "error,warning", "--tag-display-limit", "0"])
        .args(["--allow-root", "--suppress-tags", SUPPRESSED])
        .args(debs.iter().map(|deb| &deb.path));
    let output = match lintian.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = "lintian (Debian package of that name) is missing";
            return Ok(Outcome::Skipped(reason.to_owned()));
        }
        output => output.context("cannot run lintian")?,
    };
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("lintian is not content: {}", errors.trim());
    }
    Ok(Outcome::Passed)
}
