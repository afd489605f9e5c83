//! The drills of the operations guide, carried out as they are written, on three real nodes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::metalmesh;
use crate::daemon::program;
use crate::nodes::Cluster;

const GUIDE: &str = include_str!("../../../../docs/operations/disaster-recovery.md");
/// Longest time of the commands of one block on one host, seconds; `timeout` ends them then.
const BLOCK_MAX_S: &str = "180";
/// Begins the first line of each block: where it runs.
const PLACE: &str = "# on ";
/// Places that are no control node.
const ELSEWHERE: [&str; 2] = ["your workstation", "a spare host"];

/// Commands of the guide.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    /// Numbers of the control nodes where it runs, one after the other. Empty means elsewhere.
    hosts: Vec<usize>,
    lines: Vec<String>,
    /// Words that the commands print.
    prints: Vec<String>,
}

/// A number of a control node: `control-2` or `control-2.example`.
fn host(name: &str) -> usize {
    let name = name.trim_end_matches(".example");
    let number = name.strip_prefix("control-").map(str::parse::<usize>);
    number
        .unwrap_or_else(|| panic!("{name} is no host"))
        .unwrap()
}

/// The hosts of a place, as the first line of a block names it.
fn hosts(place: &str) -> Vec<usize> {
    if ELSEWHERE.contains(&place) {
        return Vec::new();
    }
    place.split(", ").map(host).collect()
}

/// Blocks of `sh`, each with the lines of the block of `text` behind it. The guide has no other
/// blocks, and no command outside of them: what nobody tries may be wrong.
fn blocks(guide: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut language: Option<&str> = None;
    for line in guide.lines() {
        match (language, line.strip_prefix("```")) {
            (None, Some(begun)) => {
                assert!(["sh", "text"].contains(&begun), "a block of {begun:?}");
                language = Some(begun);
                if begun == "sh" {
                    blocks.push(Block::default());
                }
            }
            (Some(_), Some(_)) => language = None,
            (Some("sh"), None) => {
                let block = blocks.last_mut().unwrap();
                match line.strip_prefix(PLACE) {
                    Some(place) => block.hosts = hosts(place),
                    None => block.lines.push(line.to_owned()),
                }
            }
            (Some(_), None) => blocks.last_mut().unwrap().prints.push(line.to_owned()),
            (None, None) => {
                let has_command = ["`metalmesh ", "`metalmeshd ", "`systemctl "]
                    .iter()
                    .any(|begin| line.contains(begin));
                assert!(!has_command, "a command that is not tried: {line}");
            }
        }
    }
    blocks
}

/// The cluster and the place of the operator.
struct Drill {
    cluster: Cluster,
    /// Directory of the operator, with the place of backups.
    dir: PathBuf,
    /// Key that the node printed that waits to join.
    key: String,
}

impl Drill {
    async fn run(&mut self, block: &Block) {
        let is_elsewhere = block.hosts.is_empty();
        let places: Vec<Option<usize>> = match is_elsewhere {
            true => vec![None],
            false => block.hosts.iter().copied().map(Some).collect(),
        };
        for place in places {
            let printed = self.run_at(place, &block.lines).await;
            for words in &block.prints {
                assert!(
                    printed.contains(words.as_str()),
                    "{block:?} does not print {words:?}: {printed}"
                );
            }
        }
    }

    /// Runs lines at a place. The system's services and copies between hosts are done here, all
    /// else is done by a shell.
    async fn run_at(&mut self, place: Option<usize>, lines: &[String]) -> String {
        let (mut printed, mut script) = (String::new(), String::new());
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["systemctl", verb, "metalmeshd"] => {
                    printed += &self.shell(place, &std::mem::take(&mut script));
                    self.unit(place.unwrap(), verb);
                }
                ["scp", file, to] => {
                    printed += &self.shell(place, &std::mem::take(&mut script));
                    let (to_host, path) = to.split_once(':').unwrap();
                    let to = self.paths_of(Some(host(to_host)), path);
                    fs::copy(self.dir.join(file), to).unwrap();
                }
                _ => {
                    let line = match line.contains("NODE") {
                        true => line.replace("NODE", &self.newest_node().await),
                        false => line.clone(),
                    };
                    script += &line;
                    script.push('\n');
                }
            }
        }
        printed + &self.shell(place, &script)
    }

    /// The number of the node that was invited last.
    async fn newest_node(&self) -> String {
        let status = self.cluster.status(0).await;
        let newest = status.nodes.iter().map(|node| node.id).max();
        newest.unwrap().to_string()
    }

    /// Starts or stops the node of a host, as its unit does.
    fn unit(&mut self, host: usize, verb: &str) {
        let node = &mut self.cluster.nodes[host - 1];
        match verb {
            "stop" => assert!(node.terminate(), "control-{host}: {}", node.log()),
            "start" => {
                node.start();
                // `ready ...`, or the key of a node that waits for its ticket.
                let said = node.wait_said("");
                if said.starts_with("waiting ") {
                    self.key = node.key();
                }
            }
            _ => panic!("systemctl {verb} is not known"),
        }
    }

    /// The paths and addresses of the guide as they are in this test.
    fn paths_of(&self, place: Option<usize>, text: &str) -> String {
        let mut text = text.replace("HEX", &self.key);
        text = text.replace("/backup", self.dir.join("backup").to_str().unwrap());
        for (at, node) in self.cluster.nodes.iter().enumerate() {
            let url = format!("https://control-{}.example:4443", at + 1);
            text = text.replace(&url, &node.api);
        }
        let Some(host) = place else { return text };
        let home = &self.cluster.nodes[host - 1].dir;
        let config = home.join("node.toml");
        let data = home.join("data");
        text.replace("/etc/metalmesh/metalmeshd.toml", config.to_str().unwrap())
            .replace("/var/lib/metalmesh/control", data.to_str().unwrap())
    }

    /// Runs a script, which has to succeed; what it prints.
    fn shell(&self, place: Option<usize>, script: &str) -> String {
        if script.is_empty() {
            return String::new();
        }
        let script = self.paths_of(place, script);
        let programs = Path::new(program()).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command
            .arg(BLOCK_MAX_S)
            .args(["bash", "-eu", "-o", "pipefail", "-c", &script])
            .current_dir(&self.dir)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env_remove("METALMESH_CONFIG")
            .env_remove("METALMESH_API_URL")
            .env_remove("METAL_APIV2_URL");
        if place.is_none() {
            let context = self.cluster.nodes[0].dir.join("context.yaml");
            command.env("METALMESH_CONFIG", context);
        }
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{printed}\n{error}");
        printed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drills_work_as_they_are_written() {
    if metalmesh().is_none() {
        return;
    }
    let blocks = blocks(GUIDE);
    assert!(blocks.len() > 20, "{}", blocks.len());
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = Cluster::form(dir.path());
    cluster.join(&dir.path().join("2"), 0).await;
    cluster.join(&dir.path().join("3"), 0).await;
    fs::create_dir(dir.path().join("backup")).unwrap();
    let mut drill = Drill {
        cluster,
        dir: dir.path().to_owned(),
        key: String::new(),
    };
    for block in &blocks {
        drill.run(block).await;
    }
}

#[test]
fn commands_where_they_run_and_what_they_print() {
    let guide = "# A\n```sh\n# on control-1, control-3\nls\npwd\n```\nso:\n\n```text\nhome\n```\n\
                 ```sh\n# on your workstation\ntrue\n```\n";
    let block = |hosts: &[usize], lines: &[&str], prints: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Block {
            hosts: hosts.to_vec(),
            lines: owned(lines),
            prints: owned(prints),
        }
    };
    let expected = [
        block(&[1, 3], &["ls", "pwd"], &["home"]),
        block(&[], &["true"], &[]),
    ];
    assert_eq!(blocks(guide), expected);
}
