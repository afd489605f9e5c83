//! Decides what the first start works from: a configuration that exists, flags, answers, questions.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Default path of the configuration file.
pub(super) const CONFIG_FILE: &str = "/etc/metalmesh/metalmeshd.toml";

/// The facts that decide.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceFacts<'a> {
    /// `--config`.
    pub(super) config: Option<&'a Path>,
    /// `true` if the configuration file, named or default, exists.
    pub(super) exists: bool,
    /// `--answers`.
    pub(super) answers: Option<&'a Path>,
    /// `true` if the flags alone describe the node: `--data-dir`.
    pub(super) has_flags: bool,
    /// `true` if a person can be asked.
    pub(super) is_terminal: bool,
    /// `--force`.
    pub(super) force: bool,
}

/// The basis of the first start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SetupSource {
    /// A configuration file that exists and stays as it is.
    Config(PathBuf),
    /// Flags alone, without a configuration file.
    Flags,
    /// A file of answers; the configuration is written.
    Answers { answers: PathBuf, config: PathBuf },
    /// The person at the terminal; the configuration is written.
    Questions { config: PathBuf },
}

/// Chooses the basis. An existing configuration is never replaced without `--force`.
///
/// # Errors
/// There is none; the message names the ways.
pub(super) fn choose(facts: SourceFacts<'_>) -> Result<SetupSource> {
    let config = facts
        .config
        .unwrap_or_else(|| Path::new(CONFIG_FILE))
        .to_owned();
    let is_kept = facts.exists && !facts.force;
    match facts.answers {
        Some(answers) if !is_kept => {
            let answers = answers.to_owned();
            return Ok(SetupSource::Answers { answers, config });
        }
        Some(_) => bail!(
            "{}: exists already, and --answers would replace it; use it without --answers, or \
             replace it by --force",
            config.display()
        ),
        None => {}
    }
    if facts.config.is_none() && facts.has_flags {
        return Ok(SetupSource::Flags);
    }
    if is_kept {
        return Ok(SetupSource::Config(config));
    }
    if facts.is_terminal {
        return Ok(SetupSource::Questions { config });
    }
    bail!(
        "{}: {}, and there is no terminal to ask at; write it (metalmeshd.example.toml shows how), \
         give the answers in a file (--answers FILE), or run this in a terminal",
        config.display(),
        if facts.exists {
            "is to be replaced"
        } else {
            "does not exist"
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: SourceFacts<'_> = SourceFacts {
        config: None,
        exists: false,
        answers: None,
        has_flags: false,
        is_terminal: false,
        force: false,
    };

    #[test]
    fn the_basis_follows_from_flags_files_and_terminal() {
        let own = Some(Path::new("/own.toml"));
        let answers = Some(Path::new("/answers.toml"));
        let asked = |config: &str| SetupSource::Questions {
            config: config.into(),
        };
        let answered = |config: &str| SetupSource::Answers {
            answers: "/answers.toml".into(),
            config: config.into(),
        };
        let kept = |config: &str| SetupSource::Config(config.into());
        for (facts, expected) in [
            (
                SourceFacts {
                    config: own,
                    exists: true,
                    ..FACTS
                },
                Ok(kept("/own.toml")),
            ),
            (
                SourceFacts {
                    exists: true,
                    is_terminal: true,
                    ..FACTS
                },
                Ok(kept(CONFIG_FILE)),
            ),
            (
                SourceFacts {
                    has_flags: true,
                    is_terminal: true,
                    ..FACTS
                },
                Ok(SetupSource::Flags),
            ),
            (
                SourceFacts {
                    config: own,
                    exists: true,
                    has_flags: true,
                    ..FACTS
                },
                Ok(kept("/own.toml")),
            ),
            (
                SourceFacts {
                    is_terminal: true,
                    ..FACTS
                },
                Ok(asked(CONFIG_FILE)),
            ),
            (
                SourceFacts {
                    config: own,
                    exists: true,
                    is_terminal: true,
                    force: true,
                    ..FACTS
                },
                Ok(asked("/own.toml")),
            ),
            (
                SourceFacts {
                    config: own,
                    answers,
                    is_terminal: true,
                    ..FACTS
                },
                Ok(answered("/own.toml")),
            ),
            (
                SourceFacts {
                    answers,
                    exists: true,
                    force: true,
                    ..FACTS
                },
                Ok(answered(CONFIG_FILE)),
            ),
            (
                SourceFacts {
                    answers,
                    exists: true,
                    ..FACTS
                },
                Err("exists already"),
            ),
            (
                SourceFacts {
                    config: own,
                    ..FACTS
                },
                Err("does not exist"),
            ),
            (
                SourceFacts {
                    exists: true,
                    force: true,
                    ..FACTS
                },
                Err("is to be replaced"),
            ),
            (FACTS, Err(CONFIG_FILE)),
        ] {
            match (choose(facts), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{facts:?}"),
                (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{error}"),
                (found, expected) => panic!("{facts:?}: {found:?} instead of {expected:?}"),
            }
        }
    }
}
