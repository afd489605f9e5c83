//! The published Go client and its command line, unchanged, against a real node.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use crate::cli::{Cli, metalmesh};
use crate::daemon::{Daemon, PATIENCE};
use crate::go::Program;
use crate::published_agent::{Agent, MACHINE};

const CLI: Program = Program {
    module: "github.com/metal-stack/cli",
    version: "v0.1.0",
    package: "github.com/metal-stack/cli",
    own: None,
};
const CLIENT: Program = Program {
    module: "github.com/metal-stack/api",
    version: "v0.8.4",
    package: "github.com/metal-stack/api",
    own: Some("published_client"),
};
const PASSWORD: &str = "correct horse battery";

/// The published command line with a home of its own and a browser that logs in as somebody.
struct Metalctl {
    program: PathBuf,
    home: PathBuf,
    path: String,
}

impl Metalctl {
    fn new(program: PathBuf, dir: &Path) -> Self {
        let (home, bin) = (dir.join("home"), dir.join("bin"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&bin).unwrap();
        let browser = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/browser.py");
        // It waits until the browser is open, and only then for what the browser brings.
        let script = format!(
            "#!/bin/sh\necho \"$PASSWORD\" | python3 {} \"$1\" \"$WHO\" > {} 2>&1 &\n",
            browser.display(),
            dir.join("browser.log").display()
        );
        let opener = bin.join("xdg-open");
        fs::write(&opener, script).unwrap();
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o700)).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        Self {
            program,
            home,
            path: format!("{}:{path}", bin.display()),
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.program)
            .args(arguments)
            .env("HOME", &self.home)
            .env("PATH", &self.path)
            .env("WHO", "ada")
            .env("PASSWORD", PASSWORD)
            .output()
            .unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} should fail");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A field of the one object that there is. Of lists it writes no JSON.
    fn field(&self, arguments: &[&str], field: &str) -> String {
        let template = format!("{{{{ .{field} }}}}");
        let shown = ["-o", "template", "--template", &template];
        self.ok(&[arguments, &shown].concat()).trim().to_owned()
    }
}

/// What an operator provides.
fn provide(root: &Metalctl, dir: &Path) {
    let partition = ["admin", "partition", "create", "--id", "lab"];
    let boot = [
        "--image-url",
        "http://x.example/i",
        "--kernel-url",
        "http://x.example/k",
    ];
    root.ok(&[&partition[..], &boot].concat());
    let size = dir.join("size.yaml");
    let limits = "id: small\nname: small\nconstraints:\n\
                  - {type: SIZE_CONSTRAINT_TYPE_CORES, min: 1, max: 4}\n\
                  - {type: SIZE_CONSTRAINT_TYPE_MEMORY, min: 1, max: 4294967296}\n\
                  - {type: SIZE_CONSTRAINT_TYPE_STORAGE, min: 1, max: 107374182400}\n";
    fs::write(&size, limits).unwrap();
    let size = size.to_str().unwrap();
    root.ok(&["admin", "size", "create", "-f", size]);
    // What is there already is updated.
    root.ok(&["admin", "size", "apply", "-f", size]);
    let image = dir.join("image.yaml");
    let digest = "ab".repeat(32);
    let text = format!(
        "id: debian-12.0.1\nurl: http://x.example/i\nfeatures: [IMAGE_FEATURE_MACHINE]\n\
         classification: IMAGE_CLASSIFICATION_SUPPORTED\n\
         meta: {{labels: {{labels: {{metalmesh.dev/digest: 'sha256:{digest}'}}}}}}\n"
    );
    fs::write(&image, text).unwrap();
    root.ok(&["admin", "image", "create", "-f", image.to_str().unwrap()]);
    let network = ["admin", "network", "create", "--id", "super", "--name"];
    let of = ["super", "--type", "super", "--partition", "lab"];
    let prefixes = [
        "--prefixes",
        "10.0.0.0/16",
        "--default-ipv4-prefix-length",
        "24",
        "--nat-type",
        "none",
    ];
    root.ok(&[&network[..], &of, &prefixes].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_s_story_with_the_published_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let (Some(program), Some(ours)) = (CLI.or_skipped(), metalmesh()) else {
        return;
    };
    let daemon = Daemon::start(dir.path());
    let cli = Cli {
        program: ours,
        config: daemon.config().to_owned(),
    };
    let password = dir.path().join("password");
    fs::write(&password, format!("{PASSWORD}\n")).unwrap();
    let password = password.to_str().unwrap();
    cli.ok(&["user", "create", "ada", "--password-file", password]);

    let ctl = Metalctl::new(program, dir.path());
    let token = daemon.admin_token();
    let root = ["context", "add", "root", "--api-url", &daemon.api];
    ctl.ok(&[&root[..], &["--activate", "--api-token", &token]].concat());
    provide(&ctl, dir.path());
    // The published command line has no layouts, and no flag to name one.
    let layout = dir.path().join("layout.yaml");
    let text = "id: whole\ndisks: [{device: /dev/sda, partitions: [{number: 1, size: 0}]}]\n\
                filesystems: [{device: /dev/sda1, format: FORMAT_EXT4, path: /}]\n\
                constraints: {sizes: [small], images: {debian: '>= 12'}}\n";
    fs::write(&layout, text).unwrap();
    cli.ok(&["filesystem", "create", "-f", layout.to_str().unwrap()]);
    assert!(ctl.ok(&["health"]).contains("machines"));
    assert!(ctl.ok(&["version"]).contains("Server"));

    let login = ["login", "--context", "ada", "--api-url", &daemon.api];
    let done = ctl.ok(&login);
    assert!(done.contains("login successful"), "{done}");
    assert!(ctl.ok(&["user", "describe"]).contains("login: ada"));
    ctl.ok(&[
        "project",
        "create",
        "--name",
        "web",
        "--description",
        "web",
        "--tenant",
        "ada",
    ]);
    let project = ctl.field(&["project", "list"], "uuid");
    ctl.ok(&["context", "set-project", &project]);
    in_the_project(&ctl, &project);
    let agent = Agent::of(&cli, &daemon.api, dir.path());
    let hammer = agent.machine(["leaf1", "leaf2"]).await;
    let _waits = hammer.wait().await;
    a_machine(&ctl, &project);
    for list in [
        &["image", "list"][..],
        &["size", "list"],
        &["partition", "list"],
        &["tenant", "list"],
        &["project", "member", "list"],
        &["machine", "list"],
        &["api-methods"],
    ] {
        assert!(!ctl.ok(list).is_empty(), "{list:?}");
    }
    let refused = ctl.refused(&["admin", "machine", "list"]);
    assert!(refused.contains("permission_denied"), "{refused}");

    ctl.ok(&["logout", "--api-url", &daemon.api]);
    ctl.ok(&["context", "switch", "root"]);
    for list in ["machine", "switch", "token", "task", "audit", "component"] {
        ctl.ok(&["admin", list, "list"]);
    }
    cli.ok(&["audit", "verify"]);
}

/// Networks, addresses, machines, tokens and invitations.
fn in_the_project(ctl: &Metalctl, project: &str) {
    assert!(
        ctl.ok(&["network", "list-base-networks"])
            .contains("10.0.0.0/16")
    );
    ctl.ok(&["network", "create", "--name", "net", "--partition", "lab"]);
    let network = ctl.field(&["network", "list"], "id");
    let shown = ctl.ok(&["network", "describe", &network]);
    assert!(shown.contains("10.0.0.0/24"), "{shown}");
    let ip = ["ip", "create", "--name", "web", "--network", &network];
    let ip = ctl.field(&[&ip[..], &["--project", project]].concat(), "ip");
    assert!(ctl.ok(&["ip", "list"]).contains(&ip));
    let busy = ctl.refused(&["network", "delete", &network, "--skip-security-prompts"]);
    assert!(busy.contains("failed_precondition"), "{busy}");
    ctl.ok(&["ip", "delete", &ip, "--skip-security-prompts"]);

    let role = format!("{project}=PROJECT_ROLE_EDITOR");
    let create = ["token", "create", "--description", "ci", "--expires", "1h"];
    let made = ctl.ok(&[&create[..], &["--project-roles", &role]].concat());
    assert!(made.contains("eyJ"), "the secret is shown once");
    let listed = ctl.ok(&["token", "list"]);
    assert!(listed.contains("ci") && !listed.contains("eyJ"), "{listed}");
    let invite = ["project", "invite", "generate-join-secret", "--role"];
    ctl.ok(&[&invite[..], &["PROJECT_ROLE_VIEWER"]].concat());
    assert!(ctl.ok(&["project", "invite", "list"]).contains(project));
}

/// A public key, as its owner has it in a file.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me";

/// A machine, as soon as one waits, until it is given back.
fn a_machine(ctl: &Metalctl, project: &str) {
    let network = ctl.field(&["network", "list"], "id");
    let create = ["machine", "create", "--project", project, "--name", "m1"];
    let of = ["--image", "debian-12.0", "--size", "small", "--networks"];
    let more = [
        &network,
        "--partition",
        "lab",
        "--hostname",
        "m1",
        "--ssh-public-key",
        KEY,
    ];
    let create = [&create[..], &of, &more].concat();
    let until = Instant::now() + PATIENCE;
    loop {
        let output = ctl.run(&create);
        if output.status.success() {
            break;
        }
        let none = String::from_utf8_lossy(&output.stderr);
        assert!(
            none.contains("resource_exhausted") && none.contains("MM-1203"),
            "{none}"
        );
        assert!(Instant::now() < until, "no machine waits: {none}");
    }
    for wide in [&[][..], &["-o", "wide"]] {
        let listed = ctl.ok(&[&["machine", "list"], wide].concat());
        assert!(listed.contains(MACHINE), "{listed}");
    }
    let mine = ["--project", project];
    let shown = ctl.ok(&[&["machine", "describe", MACHINE], &mine[..]].concat());
    assert!(shown.contains("10.0.0."), "{shown}");
    let update = ["machine", "update", MACHINE, "--description", "the first"];
    // Without a key it sends one that is empty, which its own contract refuses.
    let key = ["--ssh-public-key", KEY];
    ctl.ok(&[&update[..], &key, &mine].concat());
    let shown = ctl.ok(&[&["machine", "describe", MACHINE], &mine[..]].concat());
    assert!(shown.contains("the first"), "{shown}");
    let delete = ["machine", "delete", MACHINE, "--skip-security-prompts"];
    ctl.ok(&[&delete[..], &mine].concat());
}

#[test]
fn the_published_go_client() {
    let Some(program) = CLIENT.or_skipped() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let output = Command::new(program)
        .arg(&daemon.api)
        .env("ADMIN_TOKEN", daemon.admin_token())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    assert!(output.status.success(), "{text}\n{}", daemon.log());
    assert!(
        text.contains("HTTP/1.1") && text.contains("HTTP/2.0"),
        "{text}"
    );
}
