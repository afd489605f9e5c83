//! `./dev bench`: builds what measures, fetches what it is compared with, and hands over.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};

use crate::{debs, fleet};

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The store beside etcd: three nodes of each on this machine; see --help
    #[command(disable_help_flag = true)]
    Store {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// One decision about who may call what, without and with site policies; see --help
    #[command(disable_help_flag = true)]
    Authz {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// The agents' link beside tonic, and ten thousand agents of one node; see --help
    #[command(disable_help_flag = true)]
    Link {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// What a machine costs control, with more and more of them; see --help
    #[command(disable_help_flag = true)]
    Fleet {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Each command with the largest input that the state takes; see --help
    #[command(disable_help_flag = true)]
    Apply {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// A tenant's calls beside strangers that flood the API; see --help
    #[command(disable_help_flag = true)]
    Strangers {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Ports of switches: from the call to both leaves, and one agent of a large switch; see --help
    #[command(disable_help_flag = true)]
    Switch {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// The firewall's rules beside nft, and packets through them; needs root; see --help
    #[command(disable_help_flag = true)]
    Firewall {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// The API beside Ironic with MariaDB on this machine; see --help
    #[command(disable_help_flag = true)]
    Api {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// A rolling upgrade of three nodes to the next level while clients write; see --help
    #[command(disable_help_flag = true)]
    Upgrade {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Ironic's API beside Ironic with MariaDB, its policy, and claims among many hosts; see --help
    #[command(disable_help_flag = true)]
    Tenancy {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

pub(crate) fn run(root: &Path, args: &BenchArgs) -> Result<()> {
    match &args.what {
        What::Store { args } => {
            build(root, &["bench"])?;
            let part = part("--etcd", args, etcd)?;
            hand_over("store", part.as_slice(), root, args)
        }
        What::Api { args } => beside_ironic("api", root, args),
        What::Tenancy { args } => beside_ironic("tenancy", root, args),
        What::Link { args } => beside_the_product("link", root, args),
        What::Switch { args } => beside_the_product("switch", root, args),
        What::Firewall { args } => firewall(root, args),
        What::Strangers { args } => beside_the_product("strangers", root, args),
        What::Upgrade { args } => upgrade(root, args),
        What::Fleet { args } => {
            let bench = [OsString::from("bench")];
            fleet::start(root, bench.iter().chain(args))
        }
        What::Authz { args } => alone("authz", root, args),
        What::Apply { args } => alone("apply", root, args),
    }
}

/// A bench that needs nothing but itself.
fn alone(which: &str, root: &Path, args: &[OsString]) -> Result<()> {
    build(root, &["bench"])?;
    hand_over(which, &[], root, args)
}

/// The firewall's bench is a program of its own, without the store that the others link.
fn firewall(root: &Path, args: &[OsString]) -> Result<()> {
    build(root, &["bench-firewall", "metalmesh-firewall"])?;
    let program = release(root).join("bench-firewall");
    let ours = || Ok(release(root).join("metalmesh-firewall"));
    let mut bench = Command::new(&program);
    if let Some((flag, path)) = part("--firewall", args, ours)? {
        bench.arg(flag).arg(path);
    }
    Err(bench.args(args).exec()).with_context(|| format!("cannot run {}", program.display()))
}

/// A bench that needs the product's program and nothing else.
fn beside_the_product(which: &str, root: &Path, args: &[OsString]) -> Result<()> {
    build(root, &["bench", "bench-leaf", "metalmeshd"])?;
    let ours = || Ok(release(root).join("metalmeshd"));
    let part = part("--metalmeshd", args, ours)?;
    hand_over(which, part.as_slice(), root, args)
}

/// A bench that needs the product's program, and that of the next feature level.
fn upgrade(root: &Path, args: &[OsString]) -> Result<()> {
    build(root, &["bench", "metalmeshd"])?;
    let ours = || Ok(release(root).join("metalmeshd"));
    let next = || {
        crate::test::build_next_level(root, &["--release"])?;
        Ok(release(root).join("metalmeshd-next"))
    };
    let next = part("--next", args, next)?;
    let metalmeshd = part("--metalmeshd", args, ours)?;
    let parts: Vec<Part> = metalmeshd.into_iter().chain(next).collect();
    hand_over("upgrade", &parts, root, args)
}

/// A bench that needs the product's program, and Ironic with MariaDB.
fn beside_ironic(which: &str, root: &Path, args: &[OsString]) -> Result<()> {
    let mariadb = || {
        let packages = ["mariadb-server-core", "mariadb-client-core"];
        Ok(debs::fetch("mariadb", &packages)?.root)
    };
    let packages = root.join("tests/perf/ironic.txt");
    let mariadb = part("--mariadb", args, mariadb)?;
    let ironic = part("--ironic", args, || ironic(&packages))?;
    build(root, &["bench", "metalmeshd"])?;
    let ours = || Ok(release(root).join("metalmeshd"));
    let metalmeshd = part("--metalmeshd", args, ours)?;
    let parts: Vec<Part> = mariadb
        .into_iter()
        .chain(ironic)
        .chain(metalmeshd)
        .collect();
    hand_over(which, &parts, root, args)
}

/// A flag of the bench with the path that it gets.
type Part = (&'static str, PathBuf);

/// What the bench is given beside the user's arguments; none where the user names it, which wins,
/// and then nothing is fetched.
fn part(
    flag: &'static str,
    args: &[OsString],
    find: impl FnOnce() -> Result<PathBuf>,
) -> Result<Option<Part>> {
    if is_given(flag, args) {
        return Ok(None);
    }
    Ok(Some((flag, find()?)))
}

/// `true` if the arguments have the flag, as `--flag PATH` or `--flag=PATH`.
fn is_given(flag: &str, args: &[OsString]) -> bool {
    args.iter().any(|arg| {
        let rest = arg.to_str().and_then(|arg| arg.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// Builds programs, optimised. With the features of the whole workspace: crates that one of them has
/// built are not built again for another.
pub(crate) fn build(root: &Path, programs: &[&str]) -> Result<()> {
    let mut build = crate::cargo();
    build.args(["build", "--release", "--workspace"]);
    for program in programs {
        build.args(["--bin", program]);
    }
    let status = build.current_dir(root).status();
    if !status.context("cannot run cargo build")?.success() {
        bail!("the bench does not build");
    }
    Ok(())
}

pub(crate) fn release(root: &Path) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("release")
}

/// Signals and the exit code are the bench's own.
fn hand_over(which: &str, parts: &[Part], root: &Path, args: &[OsString]) -> Result<()> {
    let program = release(root).join("bench");
    let mut bench = Command::new(&program);
    bench.arg(which);
    for (flag, path) in parts {
        bench.arg(flag).arg(path);
    }
    Err(bench.args(args).exec()).with_context(|| format!("cannot run {}", program.display()))
}

/// A Python environment with Ironic and uWSGI, made once for each list of packages.
fn ironic(packages: &Path) -> Result<PathBuf> {
    let list = fs::read_to_string(packages).with_context(|| packages.display().to_string())?;
    let key = debs::sha256_hex(list.as_bytes());
    let venv = debs::cache_dir()?.join(format!("ironic-{}", &key[..16]));
    let whole = venv.join(".complete");
    if whole.exists() {
        return Ok(venv);
    }
    eprintln!("    installing Ironic from PyPI, some minutes");
    // What a broken attempt left behind.
    if venv.exists() {
        fs::remove_dir_all(&venv)?;
    }
    debs::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let mut pip = Command::new(venv.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]);
    debs::run(pip.arg("--requirement").arg(packages))?;
    fs::write(whole, "")?;
    Ok(venv)
}

/// Debian's etcd, unpacked and not installed: the package would start a server of its own.
fn etcd() -> Result<PathBuf> {
    let tree = debs::fetch("etcd", &["etcd-server"])?;
    let program = tree.root.join("usr/bin/etcd");
    ensure!(
        program.exists(),
        "the package etcd-server has no {}",
        program.display()
    );
    Ok(program)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::part;

    #[test]
    fn the_users_flag_wins() {
        let args = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        for (given, is_ours) in [
            (&[][..], true),
            (&["--nodes", "3"], true),
            (&["--etcd-version", "3"], true),
            (&["--etcd", "/usr/bin/etcd"], false),
            (&["--seconds", "1", "--etcd=/usr/bin/etcd"], false),
        ] {
            let found = part("--etcd", &args(given), || Ok(PathBuf::from("ours"))).unwrap();
            assert_eq!(found.is_some(), is_ours, "{given:?}");
        }
    }
}
