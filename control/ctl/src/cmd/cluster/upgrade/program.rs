//! Version and level of a metalmeshd, as it tells them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::facts::ProgramVersion;

/// Asks a program of this host for its version and its feature level.
///
/// # Errors
/// It cannot be run, or is no metalmeshd that tells its level.
pub(super) fn ask(program: &Path) -> Result<ProgramVersion> {
    let shown = program.display();
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {shown}; name the new metalmeshd by --program"))?;
    ensure!(
        output.status.success(),
        "{shown} --version failed; name the new metalmeshd by --program"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).with_context(|| {
        format!("{shown} does not tell its feature level; name a metalmeshd by --program")
    })
}

/// Parses what `metalmeshd --version` prints.
fn parse(text: &str) -> Option<ProgramVersion> {
    let version = text.lines().next()?.strip_prefix("metalmeshd ")?;
    let mut lines = text.lines();
    let level = lines.find_map(|line| line.strip_prefix("feature level: "))?;
    Some(ProgramVersion {
        version: version.trim().to_owned(),
        feature_level: level.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_what_it_says() {
        let found = parse("metalmeshd 0.2.0\nfeature level: 3\n").unwrap();
        assert_eq!(found.to_string(), "0.2.0 (level 3)");
        for other in [
            "",
            "metalmeshd 0.2.0\n",
            "metalmesh 0.2.0\nfeature level: 3\n",
            "metalmeshd 0.2.0\nfeature level: many\n",
        ] {
            assert_eq!(parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = ask(Path::new("/nowhere/metalmeshd")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/metalmeshd"), "{error}");
    }
}
