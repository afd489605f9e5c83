//! The signature of the apt repository, and how long it holds.
//!
//! A package depends on its commit alone, but the repository is signed for a time: hosts refuse its lists
//! afterwards. Otherwise whoever serves it could keep them on an old version for ever.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::release::date;
use crate::debs;

/// Default of the days that a signature holds.
pub(crate) const VALID_DAYS: u32 = 180;
/// Dates of `Release`, for date(1).
pub(super) const DATE_FORMAT: &str = "%a, %d %b %Y %T UTC";
/// The public key of the repository, below it.
pub(crate) const KEY_FILE: &str = "metalmesh-archive-key.asc";
const DAY_S: u64 = 24 * 60 * 60;

/// The key of a repository, and the time of its signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signing<'a> {
    /// File with the secret key, as `gpg --export-secret-keys` writes it.
    key: &'a Path,
    /// Time of the signature, seconds since 1970.
    at: u64,
    /// Time from which on hosts refuse it, seconds since 1970.
    until: u64,
}

impl<'a> Signing<'a> {
    /// `at` is a time as date(1) reads it, such as `now`, in UTC.
    ///
    /// # Errors
    /// date(1) reads no time after 1970.
    pub(crate) fn new(key: &'a Path, at: &str, valid_days: u32) -> Result<Self> {
        let mut command = Command::new("date");
        command.env("LC_ALL", "C").arg("--utc");
        command.arg(format!("--date={at}")).arg("+%s");
        let seconds = debs::run_text(&mut command)?;
        let at: u64 = (seconds.trim().parse())
            .with_context(|| format!("{at:?} is no time that a repository can be signed at"))?;
        let until = at.saturating_add(u64::from(valid_days) * DAY_S);
        Ok(Self { key, at, until })
    }

    /// The lines of `Release` about time.
    pub(super) fn dates(&self) -> Result<String> {
        Ok(format!(
            "Date: {}\nValid-Until: {}\n",
            date(self.at, DATE_FORMAT)?,
            self.end()?
        ))
    }

    /// Time from which on hosts refuse the repository.
    pub(super) fn end(&self) -> Result<String> {
        date(self.until, DATE_FORMAT)
    }

    /// Signs the text of `Release` and writes it, `InRelease` and `Release.gpg` to `dist`, and the public
    /// key to `out`.
    ///
    /// The key is read by gpg from its file into a keyring of its own, which is removed afterwards: no
    /// secret is an argument, and none stays.
    pub(super) fn sign(&self, text: &str, out: &Path, dist: &Path) -> Result<()> {
        let home = tempfile::Builder::new()
            .prefix("metalmesh-sign-")
            .tempdir()?;
        let signed = self.sign_in(home.path(), text);
        end_agent(home.path());
        let public = signed.context(
            "the repository cannot be signed; the key must be able to sign, and have no passphrase: \
             protect its file instead",
        )?;
        // Each file is replaced at once, and none before all are signed: hosts may be reading.
        for name in ["Release", "Release.gpg", "InRelease"] {
            let new = dist.join(format!("{name}.new"));
            fs::copy(home.path().join(name), &new)?;
            fs::rename(&new, dist.join(name))?;
        }
        Ok(fs::write(out.join(KEY_FILE), public)?)
    }

    /// Signs in a folder, which is gpg's too; returns the public key.
    fn sign_in(&self, home: &Path, text: &str) -> Result<String> {
        let release = home.join("Release");
        fs::write(&release, text)?;
        let gpg = || {
            let mut gpg = gpg_in(home);
            gpg.args(["--yes", "--no-tty", "--pinentry-mode", "loopback"]);
            gpg
        };
        debs::run(gpg().arg("--import").arg(self.key))
            .with_context(|| format!("gpg takes no key from {}", self.key.display()))?;
        let clear = ["--digest-algo", "SHA256", "--clearsign", "--output"];
        let inline = home.join("InRelease");
        debs::run(gpg().args(clear).args([&inline, &release]))?;
        let detach = ["--digest-algo", "SHA256", "--armor", "--detach-sign"];
        let beside = home.join("Release.gpg");
        debs::run(gpg().args(detach).arg("--output").args([&beside, &release]))?;
        debs::run_text(gpg().args(["--armor", "--export"]))
    }
}

/// Makes a signing key without a passphrase, in a keyring of its own that is removed again: for
/// repositories that live as long as a test.
pub(crate) fn make_key(file: &Path) -> Result<()> {
    let home = tempfile::Builder::new()
        .prefix("metalmesh-sign-")
        .tempdir()?;
    let gpg = || gpg_in(home.path());
    let make = [
        "--passphrase",
        "",
        "--quick-gen-key",
        "test",
        "ed25519",
        "sign",
        "never",
    ];
    let made = debs::run(gpg().args(make))
        .and_then(|()| debs::run(gpg().arg("--output").arg(file).arg("--export-secret-keys")));
    end_agent(home.path());
    made.context("gpg makes no key")
}

/// gpg leaves an agent behind, whose socket is in its home.
fn end_agent(home: &Path) {
    let mut end = Command::new("gpgconf");
    debs::run(end.arg("--homedir").arg(home).args(["--kill", "all"])).ok();
}

/// gpg with a home of its own.
fn gpg_in(home: &Path) -> Command {
    let mut gpg = Command::new("gpg");
    gpg.arg("--homedir").arg(home).args(["--batch", "--quiet"]);
    gpg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_have_a_time_and_an_end() {
        let key = Path::new("key");
        let signing = Signing::new(key, "@86400", 2).unwrap();
        assert_eq!((signing.at, signing.until), (DAY_S, 3 * DAY_S));
        assert_eq!(signing.end().unwrap(), "Sun, 04 Jan 1970 00:00:00 UTC");
        for wrong in ["yesterwhen", "@-1", "1969-12-31"] {
            assert!(Signing::new(key, wrong, 2).is_err(), "{wrong}");
        }
    }
}
