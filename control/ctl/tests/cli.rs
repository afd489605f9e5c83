//! The program from outside, without a server.
#![expect(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

const CONTEXTS: &str = "current-context: here\ncontexts:\n\
     - name: here\n  api-url: http://127.0.0.1:1\n  api-token: very-secret\n";

struct Cli {
    dir: tempfile::TempDir,
}

impl Cli {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.yaml"), CONTEXTS).unwrap();
        Self { dir }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metalmesh"));
        command
            .args(arguments)
            .env_clear()
            .env("METALMESH_CONFIG", self.dir.path().join("config.yaml"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn error(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Commands that print without a server, in every way of printing.
const PRINTING: [&[&str]; 8] = [
    &["context", "ls"],
    &["context", "show"],
    &["context", "ls", "-o", "json"],
    &["context", "ls", "-o", "yaml"],
    &["completion", "bash"],
    &["explain"],
    &["explain", "MM-1203"],
    &["explain", "disk", "-o", "json"],
];

/// All kinds of objects, as they are listed for people.
const KINDS: &str = "audit, claim, component, filesystem-layout, firewall-rules, image, ip, \
    join-ticket, lease, machine, network, node-allocation, partition, policy, pool, pool-host, \
    project, project-invite, project-labels, quota, size, size-image-constraint, size-reservation, \
    switch, task, tenant, tenant-invite, token";

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let cli = Cli::new();
    for arguments in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = cli.command(arguments).stdout(writer).output();
        let output = output.unwrap();
        // As a shell reports a program that SIGPIPE ended.
        assert_eq!(output.status.code(), Some(141), "{arguments:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn nobody_reads_stderr_either() {
    let cli = Cli::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = cli.command(&["get", "nonsense"]).stderr(writer).status();
    assert_eq!(ended.unwrap().code(), Some(1));
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let cli = Cli::new();
    for arguments in PRINTING {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = cli.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        let text = error(&output);
        assert!(
            text.starts_with("error: cannot write to stdout: No space"),
            "{text}"
        );
    }
}

#[test]
fn a_token_is_not_sent_elsewhere_and_that_is_said() {
    let cli = Cli::new();
    // Nobody answers there; what matters is said before.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let asked = ["version", "--api-url", &elsewhere];
    let output = cli.run(&asked);
    let text = String::from_utf8(output.stderr).unwrap();
    let note = format!("note:  no token is sent to {elsewhere}: that of context \"here\"");
    assert!(text.starts_with(&note), "{text}");
    for word in [
        "http://127.0.0.1:1.",
        "METALMESH_TOKEN_FILE",
        "--context NAME",
    ] {
        assert!(text.contains(word), "{text}");
    }
    assert!(!text.contains("very-secret"), "{text}");
    // The same server, written otherwise; and a token of one's own.
    let output = cli.run(&["version", "--api-url", "HTTP://127.0.0.1:1/"]);
    assert!(!String::from_utf8(output.stderr).unwrap().contains("note:"));
    let token = cli.file("token", "mine\n");
    let mut command = cli.command(&asked);
    let output = command.env("METALMESH_TOKEN_FILE", token).output();
    assert!(
        !String::from_utf8(output.unwrap().stderr)
            .unwrap()
            .contains("note:")
    );
}

#[test]
fn mistakes_in_get_are_told_where_they_are() {
    let cli = Cli::new();
    let text = error(&cli.run(&["get", "secrets"]));
    let known = format!("\"secrets\" is not a kind of objects; the kinds are {KINDS}");
    assert!(text.contains(&known), "{text}");
    let text = error(&cli.run(&["get", "machine", "-o", "jsonpath={.uuid} {.labels[x]}"]));
    let place = "at position 17 of {.uuid} {.labels[x]}: [x] is neither a number";
    assert!(text.contains(place), "{text}");
    let text = error(&cli.run(&["get", "machine", "-o", "xml"]));
    assert!(
        text.contains("use one of table, wide, json, yaml, jsonpath=TEMPLATE"),
        "{text}"
    );
    let text = error(&cli.run(&["get"]));
    assert!(text.contains("<KIND>"), "{text}");
}

#[test]
fn help_names_every_kind_format_and_flag_of_get() {
    let cli = Cli::new();
    let output = cli.run(&["get", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    let words: String = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in [
        KINDS,
        "table, wide, json, yaml or jsonpath=TEMPLATE",
        "--watch",
        "--watch-only",
        "--tenant <LOGIN>",
        "--project <PROJECT>",
        "--all",
        "its token is not sent to another server",
    ] {
        assert!(words.contains(word), "no {word:?} in {words}");
    }
}

const CLOSED: &str = "package site\nimport rego.v1\n\
    methods := {\"metalstack.api.v2.MachineService/Delete\"}\n\
    deny contains {\"rule\": \"closed\", \"message\": \"not today\"} if input.relation.tenant == \"guest\"\n\
    test_closed if count(deny) == 1 with input as {\"relation\": {\"tenant\": \"guest\"}}\n";

#[test]
fn policies_are_checked_and_compared_without_a_server() {
    let cli = Cli::new();
    let path = |name: &str, text: &str| cli.file(name, text).to_str().unwrap().to_owned();
    let good = path("closed.rego", CLOSED);
    let checked = cli.run(&["policy", "check", &good]);
    assert!(checked.status.success(), "{checked:?}");
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(
        said.contains("closed.rego") && said.contains("1 passed"),
        "{said}"
    );
    let json = cli.run(&["policy", "check", &good, "-o", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json[0]["tests"][0], "test_closed");
    assert_eq!(
        json[0]["methods"][0],
        "/metalstack.api.v2.MachineService/Delete"
    );

    for (name, source, wanted) in [
        (
            "bad",
            CLOSED.replace("== \"guest\"\n", "== \n"),
            "bad.rego:5:",
        ),
        (
            "other",
            CLOSED.replace("== 1 with", "== 2 with"),
            "other.rego:5:1: test_closed fails",
        ),
        (
            "web",
            CLOSED.replace("count(deny)", "http.send({})"),
            "http.send is no function",
        ),
    ] {
        let file = path(&format!("{name}.rego"), &source);
        let said = error(&cli.run(&["policy", "check", &file]));
        assert!(said.contains(wanted), "{said}");
    }

    let diff = ["policy", "diff", &good, "--against", "none"];
    let changes = cli.run(&[&diff[..], &["-o", "json"]].concat());
    let changes: serde_json::Value = serde_json::from_slice(&changes.stdout).unwrap();
    let changes = changes.as_array().unwrap();
    let callers: Vec<_> = changes
        .iter()
        .map(|it| it["caller"].as_str().unwrap())
        .collect();
    assert_eq!(callers, ["guest-editor", "guest-owner"]);
    assert_eq!(changes[0]["change"], "loses");
    assert_eq!(changes[0]["after"], "no by closed/closed");
    let said = cli.run(&diff);
    let summary = String::from_utf8(said.stderr).unwrap();
    assert!(
        summary.starts_with("0 gained, 2 lost, 0 decided otherwise"),
        "{summary}"
    );
    let same = cli.run(&["policy", "diff", &good, "--against", &good, "-o", "json"]);
    assert_eq!(String::from_utf8(same.stdout).unwrap().trim(), "[]");

    let explain = [
        "policy",
        "explain",
        "api.v2.MachineService/Delete",
        "--against",
        &good,
    ];
    let one = cli.run(&[&explain[..], &["--as", "guest-editor", "-o", "json"]].concat());
    let one: serde_json::Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(one[0]["outcome"], "no by closed/closed");
    assert_eq!(one[0]["message"], "not today");
    assert_eq!(one[0]["input"]["relation"]["tenant"], "guest");
    let all = String::from_utf8(cli.run(&explain).stdout).unwrap();
    assert!(
        all.contains("stranger") && all.contains("no (404)"),
        "{all}"
    );
    let said = error(&cli.run(&[&explain[..], &["--as", "martian"]].concat()));
    assert!(said.contains("guest-editor, guest-owner"), "{said}");
    let said = error(&cli.run(&["policy", "diff", "--against", "none"]));
    assert!(said.contains("name a file"), "{said}");
}

/// The policy file for Metalsmith of Ironic's guide, as it is printed there.
const METALSMITH: &str = include_str!("../../oslo/tests/data/guide-metalsmith.yaml");

#[test]
fn a_policy_file_of_ironic_is_linted_without_a_server() {
    let cli = Cli::new();
    let path = |name: &str, text: &str| cli.file(name, text).to_str().unwrap().to_owned();
    let guide = path("guide.yaml", METALSMITH);
    let lint = |arguments: &[&str]| cli.run(&[&["policy", "lint", &guide][..], arguments].concat());

    let refused = lint(&[]);
    let said = error(&refused);
    for wanted in [
        "guide.yaml: 19 rules give projects what belongs to others: ",
        "baremetal:node:set_provision_state",
        "baremetal:allocation:create_restricted",
        "--allow-dangerous all",
        "note:  rule \"baremetal:node:get:driver_info\": it has no check string of its own",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let table = String::from_utf8(refused.stdout).unwrap();
    assert!(table.starts_with("RULE "), "{table}");
    let provision: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("baremetal:node:set_provision_state "))
        .collect();
    assert!(
        provision.iter().any(|line| line.contains("other-admin")),
        "{table}"
    );
    assert!(!table.contains("PUT /nodes"), "{table}");
    let wide = String::from_utf8(lint(&["-o", "wide"]).stdout).unwrap();
    assert!(
        wide.contains("PUT /nodes/{node_ident}/states/provision"),
        "{wide}"
    );

    // Each is accepted by its name, or by that of the rule of the file behind it.
    let one = lint(&["--allow-dangerous", "baremetal:node:get", "-o", "json"]);
    let said = error(&one);
    assert!(
        !said.contains("driver_info") && said.contains("vif:attach"),
        "{said}"
    );
    let json: serde_json::Value = serde_json::from_slice(&one.stdout).unwrap();
    let rules = json["dangerous"].as_array().unwrap();
    let info = rules
        .iter()
        .find(|rule| rule["rule"] == "baremetal:node:get:driver_info");
    let info = info.unwrap();
    assert_eq!(info["causes"], serde_json::json!(["baremetal:node:get"]));
    assert_eq!(
        (&info["accepted"], &info["kinds"][0]),
        (&true.into(), &"foreign-objects".into())
    );
    let changes = json["changes"].as_array().unwrap();
    assert!(changes.iter().any(|change| {
        change["caller"] == "other-admin"
            && change["object"] == "owned"
            && change["change"] == "gains"
            && change["danger"] == "foreign-objects"
    }));
    let all = lint(&["--allow-dangerous", "all"]);
    assert!(all.status.success(), "{all:?}");

    let safe = path("safe.yaml", "baremetal:node:delete: '!'\n");
    let good = cli.run(&["policy", "lint", &safe, "--allow-dangerous", "nothing"]);
    assert!(good.status.success(), "{good:?}");
    let said = String::from_utf8(good.stderr).unwrap();
    assert!(
        said.contains("no dangerous rule is called nothing"),
        "{said}"
    );
    assert!(said.contains("0 gained, 4 lost"), "{said}");
    let broken = path("broken.yaml", "a: rule:b\nb: rule:a\n");
    let said = error(&cli.run(&["policy", "lint", &broken]));
    let wanted = "broken.yaml: rule \"a\": it refers to itself: a -> b -> a; remove one";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn a_release_is_signed_and_verified_without_a_server() {
    let cli = Cli::new();
    let path = |name: &str| cli.dir.path().join(name).to_str().unwrap().to_owned();
    let [key, other, program, release] = ["key", "other", "program", "release"].map(path);
    let made = cli.run(&["release", "keygen", &key]);
    let public = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert!(public.starts_with("ed25519:"), "{public}");
    let mode = fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(error(&cli.run(&["release", "keygen", &key])).contains("cannot create"));
    let foreign = cli.run(&["release", "keygen", &other]);
    let foreign = String::from_utf8(foreign.stdout).unwrap().trim().to_owned();

    cli.file("program", "#!/bin/sh\nexit 0\n");
    let sign = [
        "release", "sign", &program, "1.2.3", "--key", &key, "--out", &release,
    ];
    assert!(error(&cli.run(&sign)).contains("name it with --architecture"));
    let named = [&sign[..], &["--architecture", "x86_64"]].concat();
    let dry = [&["--dry-run"][..], &named].concat();
    assert!(error(&cli.run(&dry)).contains("leave --dry-run out"));
    let signed = cli.run(&named);
    assert!(signed.status.success(), "{signed:?}");
    let verify = |key: &str| cli.run(&["release", "verify", &release, "--key", key, "-o", "json"]);
    let shown = verify(&public);
    assert!(shown.status.success(), "{shown:?}");
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("\"version\": \"1.2.3\""), "{text}");
    assert!(error(&verify(&foreign)).contains("which is not trusted here"));

    let mut bytes = fs::read(&release).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&release, &bytes).unwrap();
    assert!(error(&verify(&public)).contains("digest: "));
    bytes.pop();
    fs::write(&release, &bytes).unwrap();
    assert!(error(&verify(&public)).contains("size: "));

    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(error(&cli.run(&named)).contains("others can read the key"));
}
