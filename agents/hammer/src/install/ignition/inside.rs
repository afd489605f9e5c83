//! The process that runs Ignition: process 1 of the namespaces that `unshare` made for it.
//!
//! It makes the new system its root, reads the config from standard input, and runs Ignition's
//! stages `fetch` (parses, merges and validates the config) and `files` (files, units, users).

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{chdir, chroot};
use serde_json::Value;

use super::output::OWN_PREFIX;
use crate::install::user_data;

/// Bytes of a config at most; control accepts half of that.
const CONFIG_LEN_MAX: u64 = 64 * 1024;
/// Bytes of a merged config at most, with the units and files of all parts.
const MERGED_LEN_MAX: u64 = 8 << 20;
/// Working directory, in memory and private to these namespaces.
const DIR: &str = "/run/metalmesh-ignition";
/// The tenant's config.
const CONFIG: &str = "/run/metalmesh-ignition/config.ign";
/// The config as Ignition has merged it.
const MERGED: &str = "/run/metalmesh-ignition/merged.json";
/// Ignition's state between its stages.
const STATE: &str = "/run/metalmesh-ignition/state";
/// Preset file by which Ignition has systemd enable units at the first boot.
const PRESETS: &str = "/etc/systemd/system-preset/20-ignition.preset";
/// Bytes of the preset file at most.
const PRESETS_LEN_MAX: u64 = 1 << 20;
/// Directory of substitutes for programs of the image, first in `PATH`. Empty unless needed.
const PROGRAMS: &str = "/run/metalmesh-ignition/bin";
/// Directory of SELinux' configuration.
const SELINUX: &str = "/etc/selinux";
/// SELinux' configuration.
const SELINUX_CONFIG: &str = "/etc/selinux/config";
/// A configuration that names a policy, which is all that Ignition reads of it.
const SELINUX_PLACEHOLDER: &[u8] = b"SELINUX=disabled\nSELINUXTYPE=none\n";
/// Search path for the image's programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Character devices that programs expect: name, and minor number of major 1 (memory devices).
const DEVICES: [(&str, u64); 5] = [
    ("null", 3),
    ("zero", 5),
    ("full", 7),
    ("random", 8),
    ("urandom", 9),
];

/// Arguments of `metalmesh-hammer run-ignition`.
#[derive(Debug, Args)]
pub struct RunIgnitionArgs {
    /// Mount point of the new system
    #[arg(long)]
    root: PathBuf,
    /// Ignition's path in the new system
    #[arg(long)]
    program: PathBuf,
}

/// Runs Ignition. Its output and this process's errors go to standard output.
#[must_use]
pub fn run(args: &RunIgnitionArgs) -> ExitCode {
    match carry_out(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a reader the exit status is all that is left.
            drop(writeln!(io::stdout().lock(), "{OWN_PREFIX}{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn carry_out(args: &RunIgnitionArgs) -> Result<()> {
    let config = bounded(io::stdin().lock(), CONFIG_LEN_MAX).context("config")?;
    enter(&args.root).context("cannot enter the new system")?;
    own_file_systems()?;
    fs::create_dir(DIR)?;
    write_private(Path::new(CONFIG), &config)?;
    stage(&args.program, "fetch")?;
    let merged = bounded(fs::File::open(MERGED)?, MERGED_LEN_MAX).context("merged config")?;
    let merged: Value = serde_json::from_slice(&merged).context("merged config")?;
    // Again after the merge: a part that was a `data:` URL before shows its sections only now.
    user_data::check_merged(&merged)?;
    let selinux = SelinuxPlaceholder::needed()?;
    stage(&args.program, "files")?;
    if let Some(placeholder) = selinux {
        placeholder.remove()?;
    }
    preset_units()
}

/// A temporary SELinux configuration for images without SELinux. An Ignition that is built with
/// SELinux support, such as Debian's, fails at its end if there is no policy to label files by.
struct SelinuxPlaceholder {
    made_dir: bool,
}

impl SelinuxPlaceholder {
    /// Writes the placeholder. `None` for an image with SELinux, whose files are labelled.
    fn needed() -> Result<Option<Self>> {
        if fs::exists(SELINUX_CONFIG)? {
            return Ok(None);
        }
        let made_dir = !fs::exists(SELINUX)?;
        fs::create_dir_all(SELINUX)?;
        fs::write(SELINUX_CONFIG, SELINUX_PLACEHOLDER)?;
        fs::create_dir(PROGRAMS)?;
        // Ignition looks this program up in PATH to label the files that it wrote.
        symlink("/bin/true", Path::new(PROGRAMS).join("setfiles"))?;
        Ok(Some(Self { made_dir }))
    }

    /// Removes the placeholder, unless the config has put a file of its own in its place.
    fn remove(self) -> io::Result<()> {
        if fs::read(SELINUX_CONFIG)? == SELINUX_PLACEHOLDER {
            fs::remove_file(SELINUX_CONFIG)?;
            if self.made_dir && fs::read_dir(SELINUX)?.next().is_none() {
                fs::remove_dir(SELINUX)?;
            }
        }
        Ok(())
    }
}

fn bounded(stream: impl Read, max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a config that is too long from one of the full length.
    stream.take(max + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= max, "more than {max} bytes");
    Ok(bytes)
}

/// Moves the new system over this namespace's root. Root can leave a mere chroot by `..`, and
/// `pivot_root` does not work on an initramfs.
fn enter(root: &Path) -> nix::Result<()> {
    chdir(root)?;
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>)?;
    chroot(".")?;
    chdir("/")
}

/// Mounts the virtual file systems of the namespaces: /proc with their own processes only, /dev
/// with harmless devices, and an empty /run, so that no socket of a daemon is reachable.
fn own_file_systems() -> Result<()> {
    let hardened = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    for (kind, at, flags, data) in [
        ("proc", "/proc", hardened | MsFlags::MS_NODEV, None),
        ("tmpfs", "/dev", hardened, Some("mode=0755,size=1m")),
        (
            "tmpfs",
            "/run",
            hardened | MsFlags::MS_NODEV,
            Some("mode=0755,size=64m"),
        ),
    ] {
        fs::create_dir_all(at).context(at)?;
        mount(Some(kind), at, Some(kind), flags, data).with_context(|| format!("mount {at}"))?;
    }
    for (name, minor) in DEVICES {
        let path = Path::new("/dev").join(name);
        mknod(
            &path,
            SFlag::S_IFCHR,
            Mode::from_bits_truncate(0o666),
            makedev(1, minor),
        )
        .with_context(|| path.display().to_string())?;
        // mknod applied the umask.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    }
    Ok(())
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

fn stage(program: &Path, stage: &str) -> Result<()> {
    let mut command = in_image(program);
    command
        .arg("--platform=file")
        .arg(format!("--stage={stage}"))
        .args(["--root=/", "--log-to-stdout"])
        .arg(format!("--config-cache={MERGED}"))
        .arg(format!("--state-file={STATE}"))
        .env("IGNITION_CONFIG_FILE", CONFIG)
        // sshd of most systems reads ~/.ssh/authorized_keys, not Ignition's directory of fragments.
        .env("IGNITION_WRITE_AUTHORIZED_KEYS_FRAGMENT", "false")
        // A failing Ignition prints the whole config, with its secrets, to standard error.
        .stderr(Stdio::null());
    let status = command
        .status()
        .with_context(|| program.display().to_string())?;
    if !status.success() {
        bail!("stage {stage}: {status}");
    }
    Ok(())
}

/// A command that runs a program of the image, without hammer's environment.
fn in_image(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", format!("{PROGRAMS}:{PATH}"))
        .env("HOME", "/root")
        .env("LC_ALL", "C")
        // systemctl works on files only: there is no systemd to talk to in these namespaces.
        .env("SYSTEMD_OFFLINE", "1")
        .stdin(Stdio::null());
    command
}

/// Enables and disables the units that the config names. At a first boot systemd would apply
/// presets to all units; the image's other units must stay as its maker set them.
fn preset_units() -> Result<()> {
    let file = match fs::File::open(PRESETS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let text = bounded(file, PRESETS_LEN_MAX).context(PRESETS)?;
    let units = units_of(&String::from_utf8_lossy(&text));
    if units.is_empty() {
        return Ok(());
    }
    let mut command = in_image(Path::new("systemctl"));
    // `--`: the names are the tenant's, and one may look like an option.
    let status = command.args(["preset", "--"]).args(&units).status();
    let status = status.context("systemctl")?;
    if !status.success() {
        bail!(
            "cannot enable or disable the units {}: {status}",
            units.join(" ")
        );
    }
    Ok(())
}

/// Units of a preset file. A template is followed by its instances: `enable a@.service b c`.
fn units_of(presets: &str) -> Vec<String> {
    let mut units = Vec::new();
    for line in presets.lines() {
        let mut words = line.split_whitespace();
        let (Some("enable" | "disable"), Some(unit)) = (words.next(), words.next()) else {
            continue;
        };
        match unit.split_once("@.") {
            Some((name, kind)) => units.extend(words.map(|word| format!("{name}@{word}.{kind}"))),
            None => units.push(unit.to_string()),
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_instances() {
        let text = "# Generated by Ignition\nenable app.service\ndisable old.timer\n\
                    enable echo@.service one two\n\nenable\nother x\n";
        let want = [
            "app.service",
            "old.timer",
            "echo@one.service",
            "echo@two.service",
        ];
        assert_eq!(units_of(text), want);
    }

    #[test]
    fn streams_are_bounded() {
        assert_eq!(bounded(io::repeat(7).take(9), 9).unwrap().len(), 9);
        assert!(bounded(io::repeat(7), 9).is_err());
    }
}
