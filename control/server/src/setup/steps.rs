//! The next steps after the first start, for people.

use std::path::Path;

use crate::bootstrap::dialable;
use crate::config::Config;

/// The facts that the steps depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepFacts<'a> {
    pub(super) config: &'a Config,
    /// The configuration file. `None` means that flags alone describe the node.
    pub(super) path: Option<&'a Path>,
    /// File of the first admin's token. `None` means a context of the command line.
    pub(super) token_file: Option<&'a Path>,
    /// The first partition that the operator named.
    pub(super) partition: Option<&'a str>,
}

/// The command that starts the node.
fn start(path: Option<&Path>) -> String {
    match path {
        Some(path) if path == Path::new(super::source::CONFIG_FILE) => {
            "start the node: systemctl enable --now metalmeshd".to_owned()
        }
        Some(path) => format!("start the node: metalmeshd --config {}", path.display()),
        None => "start the node: metalmeshd with the same flags".to_owned(),
    }
}

const NO_BACKUPS: &str = "no backups are scheduled: add [backup] to the configuration \
                          (docs/how-to/backup-and-restore.md), or make one now and then: \
                          metalmesh cluster backup FILE";

/// The steps after `init`.
pub(super) fn after_init(facts: StepFacts<'_>) -> Vec<String> {
    let config = facts.config;
    let mut steps = vec![start(facts.path)];
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let api = dialable(config.api_listen);
    if let Some(file) = facts.token_file {
        steps.push(format!(
            "use it from the command line: metalmesh context add main --api-url {scheme}://{api} \
             --token-file {} --activate",
            file.display()
        ));
    }
    if config.peers.is_some() {
        steps.push(
            "invite two more nodes, for each one: metalmesh cluster invite HOST:PORT prints the line \
             to paste there"
                .to_owned(),
        );
    }
    let partition = facts.partition.unwrap_or("PARTITION");
    steps.push(format!(
        "create the first partition: metalmesh partition create {partition}"
    ));
    steps.push(
        "let people log in by accounts of their own (docs/how-to/log-in.md): the token of the first \
         admin ends after 90 days, and metalmeshd token makes another one"
            .to_owned(),
    );
    if config.backup.is_none() {
        steps.push(NO_BACKUPS.to_owned());
    }
    steps
}

/// The steps after `join`.
pub(super) fn after_join(facts: StepFacts<'_>, node: u64) -> Vec<String> {
    let mut steps = vec![
        start(facts.path),
        format!("give it a vote, on a node that runs: metalmesh cluster promote {node} --wait"),
    ];
    if facts.config.backup.is_none() {
        steps.push("copy the section [backup] of the first node, if it has one".to_owned());
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Overrides;

    #[test]
    fn the_steps_follow_from_the_configuration() {
        let alone = "data_dir = '/x'\n";
        let three = "data_dir = '/x'\n[peers]\nlisten = '10.0.0.1:4444'\n";
        for (text, partition, said, unsaid) in [
            (alone, None, "partition create PARTITION", "cluster invite"),
            (three, Some("east"), "partition create east", "PARTITION"),
            (
                three,
                None,
                "metalmesh cluster invite HOST:PORT",
                "systemctl",
            ),
        ] {
            let config = Config::from_text(text, &Overrides::default()).unwrap();
            let facts = StepFacts {
                config: &config,
                path: Some(Path::new("/own.toml")),
                token_file: Some(Path::new("/run/token")),
                partition,
            };
            let steps = after_init(facts).join("\n");
            assert!(steps.contains(said) && !steps.contains(unsaid), "{steps}");
            assert!(steps.contains("metalmeshd --config /own.toml"), "{steps}");
            assert!(steps.contains("no backups are scheduled"), "{steps}");
            let steps = after_join(facts, 3).join("\n");
            assert!(
                steps.contains("metalmesh cluster promote 3 --wait"),
                "{steps}"
            );
        }
    }

    #[test]
    fn the_command_line_is_shown_an_address_that_it_can_dial() {
        let text = "data_dir = '/x'\n[api]\nlisten = '0.0.0.0:4443'\n";
        let config = Config::from_text(text, &Overrides::default()).unwrap();
        let steps = after_init(StepFacts {
            config: &config,
            path: None,
            token_file: Some(Path::new("/run/token")),
            partition: None,
        });
        let steps = steps.join("\n");
        assert!(
            steps.contains(
                "context add main --api-url http://127.0.0.1:4443 --token-file /run/token"
            ),
            "{steps}"
        );
    }

    #[test]
    fn the_default_file_is_started_by_its_service() {
        let path = Path::new(crate::setup::source::CONFIG_FILE);
        assert!(start(Some(path)).contains("systemctl"));
    }
}
