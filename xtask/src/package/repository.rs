//! An apt repository: `pool/` with the packages, `dists/` with their lists, signed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::arch::Arch;
use super::deb::Deb;
use super::recipe::RECIPES;
use super::release::Release;
use super::tree::gzip;
use crate::debs::{self, sha256_hex};

/// Name of the distribution in the repository, the same for every release of Debian that is served.
const SUITE: &str = "stable";
/// Its only part.
const COMPONENT: &str = "main";
/// Where packages are, below the repository.
const POOL: &str = "pool/main/m/metalmesh";
/// The public key of the repository, below it.
pub(crate) const KEY_FILE: &str = "metalmesh-archive-key.asc";

/// Writes the repository below `out`. `key` is a file with the secret key, as
/// `gpg --export-secret-keys` writes it; without one the repository is not signed.
pub(crate) fn write(out: &Path, release: &Release, debs: &[Deb], key: Option<&Path>) -> Result<()> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    let dist = out.join("dists").join(SUITE);
    fs::create_dir_all(out.join(POOL))?;
    let mut archs: Vec<Arch> = Vec::new();
    for deb in debs {
        let name = deb.path.file_name().context("a package has no name")?;
        fs::copy(&deb.path, out.join(POOL).join(name))?;
        if !archs.contains(&deb.arch) {
            archs.push(deb.arch);
        }
    }
    let mut lists = Vec::new();
    for arch in &archs {
        let text = packages(debs.iter().filter(|deb| deb.arch == *arch))?;
        let folder = format!("{COMPONENT}/binary-{}", arch.debian());
        fs::create_dir_all(dist.join(&folder))?;
        for (name, bytes) in [
            ("Packages", text.clone().into_bytes()),
            ("Packages.gz", gzip(text.as_bytes())?),
        ] {
            let path = format!("{folder}/{name}");
            fs::write(dist.join(&path), &bytes)?;
            lists.push((path, bytes));
        }
    }
    let text = release_text(release, &archs, &lists)?;
    fs::write(dist.join("Release"), text)?;
    match key {
        Some(key) => sign(out, &dist, key),
        None => Ok(()),
    }
}

/// Writes a repository of the packages in these folders, for this machine's processor.
pub(crate) fn publish(root: &Path, out: &Path, folders: &[&Path], key: &Path) -> Result<()> {
    let release = Release::of(root)?;
    let mut debs = Vec::new();
    for folder in folders {
        for path in native(folder)? {
            debs.extend(read(path)?);
        }
    }
    ensure!(
        !debs.is_empty(),
        "no package for this machine: run ./dev package first"
    );
    write(out, &release, &debs, Some(key))
}

/// The files of packages for this machine's processor in a folder.
pub(crate) fn native(folder: &Path) -> Result<Vec<PathBuf>> {
    let native = debs::run_text(Command::new("dpkg").arg("--print-architecture"))?;
    let end = format!("_{}.deb", native.trim());
    let entries = fs::read_dir(folder)
        .with_context(|| format!("{}: run ./dev package first", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        let is_native = name.to_string_lossy().ends_with(&end);
        if is_native {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A package that was made before. `None` if it is none of ours.
fn read(path: PathBuf) -> Result<Option<Deb>> {
    let control = debs::run_text(Command::new("dpkg-deb").arg("--field").arg(&path))?;
    let is_it = |name: &str| {
        control
            .lines()
            .any(|line| line == format!("Package: {name}"))
    };
    let Some(recipe) = RECIPES.iter().find(|recipe| is_it(recipe.name)) else {
        return Ok(None);
    };
    let archs = [Arch::Amd64, Arch::Arm64];
    let arch = archs.into_iter().find(|arch| arch.is_native());
    Ok(Some(Deb {
        path,
        arch: arch.context("no packages are made for this machine's processor")?,
        control,
        name: recipe.name,
    }))
}

/// Makes a signing key without a passphrase, in a keyring of its own that is removed again: for
/// repositories that live as long as a test.
pub(crate) fn make_key(file: &Path) -> Result<()> {
    let home = tempfile::Builder::new()
        .prefix("metalmesh-sign-")
        .tempdir()?;
    let gpg = || {
        let mut gpg = Command::new("gpg");
        gpg.arg("--homedir").arg(home.path());
        gpg.args(["--batch", "--quiet"]);
        gpg
    };
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

/// The text of `Packages`.
fn packages<'a>(debs: impl Iterator<Item = &'a Deb>) -> Result<String> {
    let mut sorted: Vec<&Deb> = debs.collect();
    sorted.sort_by_key(|deb| deb.name);
    let mut text = String::new();
    for deb in sorted {
        let bytes = fs::read(&deb.path).with_context(|| deb.path.display().to_string())?;
        let name = deb.path.file_name().context("a package has no name")?;
        text.push_str(&deb.control);
        text.push_str(&format!(
            "Filename: {POOL}/{}\nSize: {}\nSHA256: {}\n\n",
            name.to_string_lossy(),
            bytes.len(),
            sha256_hex(&bytes)
        ));
    }
    Ok(text)
}

/// The text of `Release`. `lists` are the files that it vouches for, with their paths below it.
fn release_text(release: &Release, archs: &[Arch], lists: &[(String, Vec<u8>)]) -> Result<String> {
    let names: Vec<&str> = archs.iter().map(|arch| arch.debian()).collect();
    let mut text = format!(
        "Origin: metalmesh\nLabel: metalmesh\nSuite: {SUITE}\nCodename: {SUITE}\nVersion: {}\n\
         Date: {}\nArchitectures: {}\nComponents: {COMPONENT}\n\
         Description: packages of metalmesh\nAcquire-By-Hash: no\nSHA256:\n",
        release.version,
        release.date("%a, %d %b %Y %T UTC")?,
        names.join(" ")
    );
    for (path, bytes) in lists {
        text.push_str(&format!(" {} {} {path}\n", sha256_hex(bytes), bytes.len()));
    }
    Ok(text)
}

/// Signs `Release` into `InRelease` and `Release.gpg`, and puts the public key beside the packages.
///
/// The key is read by gpg from its file into a keyring of its own, which is removed afterwards: no
/// secret is an argument, and none stays.
fn sign(out: &Path, dist: &Path, key: &Path) -> Result<()> {
    let home = tempfile::Builder::new()
        .prefix("metalmesh-sign-")
        .tempdir()?;
    let gpg = || {
        let mut gpg = Command::new("gpg");
        gpg.arg("--homedir").arg(home.path());
        gpg.args([
            "--batch",
            "--quiet",
            "--yes",
            "--no-tty",
            "--pinentry-mode",
            "loopback",
        ]);
        gpg
    };
    debs::run(gpg().arg("--import").arg(key))
        .with_context(|| format!("gpg takes no key from {}", key.display()))?;
    let release = dist.join("Release");
    let signed = debs::run(
        gpg()
            .args(["--digest-algo", "SHA256", "--clearsign", "--output"])
            .args([&dist.join("InRelease"), &release]),
    )
    .and_then(|()| {
        debs::run(
            gpg()
                .args([
                    "--digest-algo",
                    "SHA256",
                    "--armor",
                    "--detach-sign",
                    "--output",
                ])
                .args([&dist.join("Release.gpg"), &release]),
        )
    })
    .and_then(|()| debs::run_text(gpg().args(["--armor", "--export"])))
    .and_then(|public| Ok(fs::write(out.join(KEY_FILE), public)?))
    .context(
        "the repository cannot be signed; the key must be able to sign, and have no passphrase: \
         protect its file instead",
    );
    end_agent(home.path());
    signed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> Release {
        Release {
            version: "0.1.0".to_owned(),
            debian: "0.1.0-1".to_owned(),
            commit: "abc".to_owned(),
            epoch: 0,
        }
    }

    #[test]
    fn the_lists_name_every_package_and_the_signature_is_that_of_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metalmesh-cli_0.1.0-1_amd64.deb");
        fs::write(&path, "deb").unwrap();
        let deb = Deb {
            path,
            arch: Arch::Amd64,
            control: "Package: metalmesh-cli\nArchitecture: amd64\n".to_owned(),
            name: "metalmesh-cli",
        };
        let key = folder.path().join("key");
        make_key(&key).unwrap();
        let out = folder.path().join("repo");
        write(&out, &release(), &[deb], Some(&key)).unwrap();
        let packages = fs::read(out.join("dists/stable/main/binary-amd64/Packages")).unwrap();
        let text = String::from_utf8(packages.clone()).unwrap();
        assert!(text.contains("Filename: pool/main/m/metalmesh/metalmesh-cli_0.1.0-1_amd64.deb\n"));
        let signed = fs::read_to_string(out.join("dists/stable/InRelease")).unwrap();
        let sum = format!(
            " {} {} main/binary-amd64/Packages\n",
            sha256_hex(&packages),
            packages.len()
        );
        assert!(signed.contains(&sum), "{signed}");
        assert!(
            signed.contains("Date: Thu, 01 Jan 1970 00:00:00 UTC\n"),
            "{signed}"
        );
        // As apt does: by gpgv, with the public key alone.
        let keyring = folder.path().join("keyring.gpg");
        let mut dearmor = Command::new("gpg");
        dearmor.arg("--homedir").arg(folder.path());
        dearmor
            .args(["--batch", "--dearmor", "--output"])
            .arg(&keyring);
        debs::run(dearmor.arg(out.join(KEY_FILE))).unwrap();
        let verify = |arguments: &[&Path]| {
            let mut gpgv = Command::new("gpgv");
            gpgv.arg("--keyring").arg(&keyring).args(arguments);
            debs::run(&mut gpgv)
        };
        let dist = out.join("dists/stable");
        verify(&[&dist.join("InRelease")]).unwrap();
        verify(&[&dist.join("Release.gpg"), &dist.join("Release")]).unwrap();
        fs::write(dist.join("Release"), "other").unwrap();
        assert!(verify(&[&dist.join("Release.gpg"), &dist.join("Release")]).is_err());
    }

    #[test]
    fn packages_that_were_made_before_are_published_again() {
        let folder = tempfile::tempdir().unwrap();
        let (debs, key) = (folder.path().join("debs"), folder.path().join("key"));
        make_key(&key).unwrap();
        let native = debs::run_text(Command::new("dpkg").arg("--print-architecture")).unwrap();
        let native = native.trim();
        for (package, version) in [
            ("metalmesh-cli", "1-1"),
            ("metalmesh-cli", "2-1"),
            ("other", "1"),
        ] {
            let tree = folder.path().join("tree/DEBIAN");
            fs::create_dir_all(&tree).unwrap();
            fs::create_dir_all(&debs).unwrap();
            let control = format!(
                "Package: {package}\nVersion: {version}\nArchitecture: {native}\n\
                 Maintainer: nobody <nobody@example.org>\nDescription: test\n"
            );
            fs::write(tree.join("control"), control).unwrap();
            let deb = debs.join(format!("{package}_{version}_{native}.deb"));
            let mut build = Command::new("dpkg-deb");
            build.args(["--root-owner-group", "--build"]);
            crate::debs::run(build.arg(folder.path().join("tree")).arg(deb)).unwrap();
        }
        let out = folder.path().join("repo");
        publish(&crate::root(), &out, &[&debs], &key).unwrap();
        let list = format!("dists/stable/main/binary-{native}/Packages");
        let text = fs::read_to_string(out.join(list)).unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("Package: "))
            .collect();
        assert_eq!(names, ["Package: metalmesh-cli", "Package: metalmesh-cli"]);
        assert!(text.contains("\nVersion: 2-1\n"), "{text}");
        assert!(publish(&crate::root(), &out, &[folder.path()], &key).is_err());
    }
}
