//! An apt repository: `pool/` with the packages, `dists/` with their lists, signed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::arch::Arch;
use super::deb::Deb;
use super::recipe::RECIPES;
use super::release::Release;
use super::signing::{DATE_FORMAT, Signing};
use super::tree::gzip;
use crate::debs::{self, sha256_hex};

/// Name of the distribution in the repository, the same for every release of Debian that is served.
const SUITE: &str = "stable";
/// Its only part.
const COMPONENT: &str = "main";
/// Where packages are, below the repository.
const POOL: &str = "pool/main/m/metalmesh";

/// Writes the repository below `out`. Without `signing` it is not signed, depends on its packages alone,
/// and has no end.
pub(crate) fn write(
    out: &Path,
    release: &Release,
    debs: &[Deb],
    signing: Option<&Signing<'_>>,
) -> Result<()> {
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
    let dates = match signing {
        Some(signing) => signing.dates()?,
        None => format!("Date: {}\n", release.date(DATE_FORMAT)?),
    };
    let text = release_text(release, &archs, &lists, &dates);
    match signing {
        Some(signing) => signing.sign(&text, out, &dist),
        None => Ok(fs::write(dist.join("Release"), text)?),
    }
}

/// Signs a repository again that was written before, with a new end. Its packages and their lists stay.
///
/// # Errors
/// There is no repository, or a file in it is not the one that it vouches for: nothing is changed then.
pub(crate) fn renew(out: &Path, signing: &Signing<'_>) -> Result<()> {
    let dist = out.join("dists").join(SUITE);
    let file = dist.join("Release");
    let text = fs::read_to_string(&file)
        .with_context(|| format!("{}: no repository of ./dev package", file.display()))?;
    let lists = text.lines().filter_map(listed);
    for (digest, path) in lists {
        let path = dist.join(path);
        check_digest(&path, digest)?;
        if path.ends_with("Packages") {
            check_packages(out, &fs::read_to_string(&path)?)?;
        }
    }
    signing.sign(&renewed(&text, &signing.dates()?)?, out, &dist)
}

/// Digest and path of a line of `Release` that names a list.
fn listed(line: &str) -> Option<(&str, &str)> {
    let mut words = line.strip_prefix(' ')?.split(' ');
    let (digest, _size, path) = (words.next()?, words.next()?, words.next()?);
    Some((digest, path))
}

/// Checks the packages that a list names.
fn check_packages(out: &Path, list: &str) -> Result<()> {
    for package in list.split("\n\n").filter(|package| !package.is_empty()) {
        let field = |name: &str| package.lines().find_map(|line| line.strip_prefix(name));
        let file = field("Filename: ").context("a list names a package without its file")?;
        let digest = field("SHA256: ").context("a list names a package without its digest")?;
        check_digest(&out.join(file), digest)?;
    }
    Ok(())
}

fn check_digest(file: &Path, digest: &str) -> Result<()> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    ensure!(
        sha256_hex(&bytes) == digest,
        "{} is not the file that the repository vouches for: make the repository again with ./dev package",
        file.display()
    );
    Ok(())
}

/// `Release` with other dates.
fn renewed(text: &str, dates: &str) -> Result<String> {
    let is_date = |line: &str| line.starts_with("Date: ");
    ensure!(
        text.lines().any(is_date),
        "Release has no Date: make the repository again with ./dev package"
    );
    let mut new = String::new();
    for line in text.lines() {
        if is_date(line) {
            new.push_str(dates);
        } else if !line.starts_with("Valid-Until: ") {
            new.push_str(line);
            new.push('\n');
        }
    }
    Ok(new)
}

/// Writes a repository of the packages in these folders, for this machine's processor.
pub(crate) fn publish(
    root: &Path,
    out: &Path,
    folders: &[&Path],
    signing: &Signing<'_>,
) -> Result<()> {
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
    write(out, &release, &debs, Some(signing))
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

/// The text of `Release`. `lists` are the files that it vouches for, with their paths below it; `dates` are
/// lines.
fn release_text(
    release: &Release,
    archs: &[Arch],
    lists: &[(String, Vec<u8>)],
    dates: &str,
) -> String {
    let names: Vec<&str> = archs.iter().map(|arch| arch.debian()).collect();
    let mut text = format!(
        "Origin: metalmesh\nLabel: metalmesh\nSuite: {SUITE}\nCodename: {SUITE}\nVersion: {}\n\
         {dates}Architectures: {}\nComponents: {COMPONENT}\n\
         Description: packages of metalmesh\nAcquire-By-Hash: no\nSHA256:\n",
        release.version,
        names.join(" ")
    );
    for (path, bytes) in lists {
        text.push_str(&format!(" {} {} {path}\n", sha256_hex(bytes), bytes.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::signing::{KEY_FILE, VALID_DAYS, make_key};

    fn release() -> Release {
        Release {
            version: "0.1.0".to_owned(),
            debian: "0.1.0-1".to_owned(),
            commit: "abc".to_owned(),
            epoch: 0,
        }
    }

    /// A package that is no more than its name, as `write` takes it.
    fn deb(folder: &Path) -> Deb {
        let path = folder.join("metalmesh-cli_0.1.0-1_amd64.deb");
        fs::write(&path, "deb").unwrap();
        Deb {
            path,
            arch: Arch::Amd64,
            control: "Package: metalmesh-cli\nArchitecture: amd64\n".to_owned(),
            name: "metalmesh-cli",
        }
    }

    #[test]
    fn the_lists_name_every_package_and_the_signature_is_that_of_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let deb = deb(folder.path());
        let key = folder.path().join("key");
        make_key(&key).unwrap();
        let out = folder.path().join("repo");
        let signing = Signing::new(&key, "@0", VALID_DAYS).unwrap();
        write(&out, &release(), &[deb], Some(&signing)).unwrap();
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
        let dates =
            "Date: Thu, 01 Jan 1970 00:00:00 UTC\nValid-Until: Tue, 30 Jun 1970 00:00:00 UTC\n";
        assert!(signed.contains(dates), "{signed}");
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
    fn a_repository_is_signed_again_with_a_new_end() {
        let folder = tempfile::tempdir().unwrap();
        let deb = deb(folder.path());
        let key = folder.path().join("key");
        make_key(&key).unwrap();
        let out = folder.path().join("repo");
        write(&out, &release(), &[deb], None).unwrap();
        let dist = out.join("dists/stable");
        let text = || fs::read_to_string(dist.join("Release")).unwrap();
        // The commit's time, without an end.
        let made = text();
        assert!(
            made.contains("\nDate: Thu, 01 Jan 1970 00:00:00 UTC\nArch"),
            "{made}"
        );
        for (date, days, dates) in [
            (
                "2026-12-01 12:00",
                30,
                "Date: Tue, 01 Dec 2026 12:00:00 UTC\nValid-Until: Thu, 31 Dec 2026 12:00:00 UTC\n",
            ),
            (
                "2026-12-20",
                10,
                "Date: Sun, 20 Dec 2026 00:00:00 UTC\nValid-Until: Wed, 30 Dec 2026 00:00:00 UTC\n",
            ),
        ] {
            renew(&out, &Signing::new(&key, date, days).unwrap()).unwrap();
            let expected = made.replace("Date: Thu, 01 Jan 1970 00:00:00 UTC\n", dates);
            assert_eq!(text(), expected);
            let signed = fs::read_to_string(dist.join("InRelease")).unwrap();
            assert!(signed.contains(dates), "{signed}");
        }
        let before = text();
        let signing = Signing::new(&key, "now", 10).unwrap();
        let package = out.join(POOL).join("metalmesh-cli_0.1.0-1_amd64.deb");
        fs::write(package, "another").unwrap();
        let error = renew(&out, &signing).unwrap_err().to_string();
        assert!(error.contains("is not the file that"), "{error}");
        assert_eq!(text(), before);
        assert!(renew(folder.path(), &signing).is_err());
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
        let signing = Signing::new(&key, "now", VALID_DAYS).unwrap();
        publish(&crate::root(), &out, &[&debs], &signing).unwrap();
        let list = format!("dists/stable/main/binary-{native}/Packages");
        let text = fs::read_to_string(out.join(list)).unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("Package: "))
            .collect();
        assert_eq!(names, ["Package: metalmesh-cli", "Package: metalmesh-cli"]);
        assert!(text.contains("\nVersion: 2-1\n"), "{text}");
        assert!(publish(&crate::root(), &out, &[folder.path()], &signing).is_err());
    }
}
