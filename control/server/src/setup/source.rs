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

    const OWN: &str = "/own.toml";
    const ANSWERS: &str = "/answers.toml";

    fn own() -> SourceFacts<'static> {
        SourceFacts {
            config: Some(Path::new(OWN)),
            ..FACTS
        }
    }

    fn answered() -> SourceFacts<'static> {
        SourceFacts {
            answers: Some(Path::new(ANSWERS)),
            ..FACTS
        }
    }

    const fn there(facts: SourceFacts<'static>) -> SourceFacts<'static> {
        SourceFacts {
            exists: true,
            ..facts
        }
    }

    const fn forced(facts: SourceFacts<'static>) -> SourceFacts<'static> {
        SourceFacts {
            force: true,
            ..facts
        }
    }

    const fn at_terminal(facts: SourceFacts<'static>) -> SourceFacts<'static> {
        SourceFacts {
            is_terminal: true,
            ..facts
        }
    }

    const fn flagged(facts: SourceFacts<'static>) -> SourceFacts<'static> {
        SourceFacts {
            has_flags: true,
            ..facts
        }
    }

    #[test]
    fn the_basis_follows_from_flags_files_and_terminal() {
        let kept = |config: &str| SetupSource::Config(config.into());
        let asked = |config: &str| SetupSource::Questions {
            config: config.into(),
        };
        let read = |config: &str| SetupSource::Answers {
            answers: ANSWERS.into(),
            config: config.into(),
        };
        let both = SourceFacts {
            config: own().config,
            ..answered()
        };
        for (facts, expected) in [
            (there(own()), kept(OWN)),
            (there(at_terminal(FACTS)), kept(CONFIG_FILE)),
            (there(flagged(own())), kept(OWN)),
            (flagged(at_terminal(FACTS)), SetupSource::Flags),
            (at_terminal(FACTS), asked(CONFIG_FILE)),
            (there(forced(at_terminal(own()))), asked(OWN)),
            (at_terminal(both), read(OWN)),
            (there(forced(answered())), read(CONFIG_FILE)),
        ] {
            assert_eq!(choose(facts).unwrap(), expected, "{facts:?}");
        }
    }

    #[test]
    fn without_a_basis_the_ways_are_named() {
        for (facts, said) in [
            (there(answered()), "exists already"),
            (own(), "does not exist"),
            (there(forced(FACTS)), "is to be replaced"),
            (FACTS, CONFIG_FILE),
        ] {
            let error = choose(facts).unwrap_err().to_string();
            assert!(error.contains(said), "{facts:?}: {error}");
        }
    }
}
