//! People log in: the command line waits, a browser goes the way, a user comes back.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::cli::{Cli, metalmesh};
use crate::daemon::Daemon;
use crate::python;
use crate::s3::Authority;

const PROVIDER: &str = "oidc-provider-mock==0.3.4";
const PASSWORD: &str = "correct horse battery";

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/server")
        .join(name)
}

/// Begins `metalmesh login` and has `who` go the way of the address that it prints.
fn log_in(
    cli: &Cli,
    flags: &[&str],
    who: &str,
    password: &str,
    ca: Option<&Path>,
) -> (Output, Output) {
    let mut waiting = cli
        .command(&[&["login", "--no-browser"], flags].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let address = said
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line.contains("/auth/openid-connect?redirect-url="))
        .expect("it prints where to log in");
    let mut browser = Command::new("python3")
        .arg(script("browser.py"))
        .args([address.trim(), who])
        .args(ca)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = browser.stdin.take().unwrap();
    writeln!(typed, "{password}").unwrap();
    drop(typed);
    let browser = browser.wait_with_output().unwrap();
    print!("{}", String::from_utf8_lossy(&browser.stdout));
    if !browser.status.success() {
        waiting.kill().unwrap();
    }
    (browser, waiting.wait_with_output().unwrap())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIPPED: python3 is missing");
    }
    is_there
}

#[test]
fn a_built_in_user_logs_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    if !has_python() {
        return;
    }
    let password = dir.path().join("password");
    fs::write(&password, format!("{PASSWORD}\n")).unwrap();
    let password = password.to_str().unwrap();
    cli.ok(&["user", "create", "ada", "--password-file", password]);
    assert!(cli.ok(&["user", "ls"]).contains("ada"));

    let mine = ["--context", "ada", "--api-url", &daemon.api];
    let (refused, _) = log_in(&cli, &mine, "ada", "a wrong password", None);
    assert!(!refused.status.success());
    let (_, done) = log_in(&cli, &mine, "ada", PASSWORD, None);
    assert!(done.status.success(), "{done:?}");
    assert!(text(&done).contains("logged in as ada"), "{}", text(&done));
    assert!(cli.ok(&["whoami", "--context", "ada"]).contains("ada"));
    let kept = fs::read_to_string(&cli.config).unwrap();
    let mut tokens = kept.lines().rev();
    let token = tokens.find(|line| line.contains("api-token")).unwrap();
    let token = token.trim().trim_start_matches("api-token: ").to_owned();

    // The provider's owner gets an administrator's token with the same login.
    cli.ok(&[
        "user",
        "create",
        "admin",
        "--password-file",
        password,
        "--context",
        "dev",
    ]);
    let root = [
        "--context",
        "root",
        "--api-url",
        &daemon.api,
        "--admin-role",
        "editor",
    ];
    let (_, done) = log_in(&cli, &root, "admin", PASSWORD, None);
    assert!(done.status.success(), "{done:?}");
    assert!(
        cli.ok(&["tenant", "ls", "--all", "--context", "root"])
            .contains("ada")
    );
    let (_, refused) = log_in(
        &cli,
        &[&mine[..], &["--admin-role", "editor"]].concat(),
        "ada",
        PASSWORD,
        None,
    );
    assert!(!refused.status.success());

    cli.ok(&["logout", "--context", "ada"]);
    let file = dir.path().join("old");
    fs::write(&file, token).unwrap();
    let old = [
        "context",
        "add",
        "old",
        "--api-url",
        &daemon.api,
        "--token-file",
    ];
    cli.ok(&[&old[..], &[file.to_str().unwrap()]].concat());
    let ended = cli.refused(&["whoami", "--context", "old"]);
    assert!(ended.contains("not valid"), "{ended}");
    let trail = cli.ok(&["audit", "ls", "--method", "/auth/login", "--context", "dev"]);
    assert!(trail.contains("ada") && trail.contains(" 16"), "{trail}");
    assert!(!daemon.log().contains(PASSWORD));
    cli.ok(&["audit", "verify", "--context", "dev"]);
}

/// A provider that runs.
struct Provider {
    child: Child,
    issuer: String,
}

impl Provider {
    fn start(dir: &Path, authority: &Authority, users: &[Value]) -> Option<Self> {
        let python = match python::environment(PROVIDER) {
            Ok(python) => python,
            Err(reason) => {
                println!("SKIPPED: {PROVIDER} cannot be installed: {reason}");
                return None;
            }
        };
        let log = dir.join("provider.log");
        let mut child = Command::new(python)
            .arg(script("oidc_provider.py"))
            .args([&authority.certificate, &authority.key])
            .args(users.iter().map(Value::to_string))
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(Ok(issuer)) = lines.next() else {
            panic!("the provider ended:\n{}", fs::read_to_string(log).unwrap());
        };
        Some(Self { child, issuer })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn people_of_a_provider_log_in() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = metalmesh() else { return };
    let authority = Authority::new(dir.path());
    let users = [
        json!({"sub": "1", "email": "ada@acme.example", "email_verified": true, "name": "Ada"}),
        json!({"sub": "2", "email": "eve@acme.example", "email_verified": false}),
    ];
    let Some(provider) = Provider::start(dir.path(), &authority, &users) else {
        return;
    };
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let secret = dir.path().join("oidc.secret");
    fs::write(&secret, "a secret\n").unwrap();
    let config = dir.path().join("metalmeshd.toml");
    let section = format!(
        "[oidc]\nissuer = {:?}\nclient_id = \"metalmesh\"\nclient_secret_file = {secret:?}\n\
         ca_file = {:?}\nurl = \"http://{free}\"\n",
        provider.issuer, authority.ca
    );
    fs::write(&config, section).unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    let daemon = Daemon::start_at(dir.path(), &free.to_string(), &flags);
    let cli = Cli {
        program,
        config: daemon.config().to_owned(),
    };

    let mine = ["--context", "mine", "--api-url", &daemon.api];
    let ca = Some(authority.ca.as_path());
    let (_, done) = log_in(&cli, &mine, "1", "", ca);
    assert!(done.status.success(), "{done:?}\n{}", daemon.log());
    let login = "ada@acme.example@openid-connect";
    assert!(
        text(&done).contains(&format!("logged in as {login}")),
        "{}",
        text(&done)
    );
    assert!(cli.ok(&["whoami", "--context", "mine"]).contains(login));

    // A mail address that nobody has verified is nobody's.
    let (refused, _) = log_in(&cli, &mine, "2", "", ca);
    assert!(!refused.status.success());
    assert!(
        text(&refused).contains("not verified"),
        "{}",
        text(&refused)
    );

    // Somebody else's code, or none of this browser.
    let elsewhere = format!("{}/auth/openid-connect/callback?code=x&state=y", daemon.api);
    let stranger = Command::new("python3")
        .arg(script("browser.py"))
        .args([&elsewhere, "1"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        text(&stranger).contains("another browser"),
        "{}",
        text(&stranger)
    );

    // Who is done goes to the provider's page for that.
    let mut logout = cli.command(&["logout", "--context", "mine", "--provider", "--no-browser"]);
    let done = logout.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let mut lines = said.lines().map(str::trim);
    let address = lines.find(|it| it.ends_with("/auth/logout/openid-connect"));
    let browser = Command::new("python3")
        .arg(script("browser.py"))
        .args([address.unwrap(), "1"])
        .arg(&authority.ca)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let way = text(&browser);
    assert!(way.contains("/oauth2/end_session 200"), "{way}");

    drop(provider);
    let (refused, _) = log_in(&cli, &mine, "1", "", ca);
    assert!(!refused.status.success());
}
