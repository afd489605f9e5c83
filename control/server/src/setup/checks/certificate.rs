//! The files of the API's certificate.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proto_types::Timestamp;

use crate::args::SetupCheck;
use crate::config::TlsFiles;
use crate::guarded_dir::FileOwner;
use crate::setup::finding::SetupFinding;
use crate::tls::{self, CertificateLife};

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 3600 * 1000;
/// Days before the end of the certificate from which there is a warning.
const DAYS_MIN: u64 = 14;

/// The state of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CertificateFacts {
    /// The reason why the files cannot be used.
    error: Option<String>,
    life: Option<CertificateLife>,
    /// Permission bits of the key file.
    key_mode: u32,
    /// Files that the service's user cannot read.
    unreadable: Vec<PathBuf>,
}

/// Reads the files and judges them. Nothing is found where the API has no certificate.
pub(super) fn check(
    files: Option<&TlsFiles>,
    reader: Option<FileOwner>,
    now: Timestamp,
) -> Vec<SetupFinding> {
    let Some(files) = files else {
        return Vec::new();
    };
    let facts = CertificateFacts {
        error: tls::server_config(files)
            .err()
            .map(|error| format!("{error:#}")),
        life: tls::life(files),
        key_mode: mode(&files.key),
        unreadable: unreadable(files, reader),
    };
    judge(&facts, files, now)
}

/// The files that the service's user cannot read.
fn unreadable(files: &TlsFiles, reader: Option<FileOwner>) -> Vec<PathBuf> {
    let Some(reader) = reader else {
        return Vec::new();
    };
    let is_unreadable = |path: &&PathBuf| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| !reader.can_read(&found))
    };
    let both = [&files.certificate, &files.key];
    both.into_iter().filter(is_unreadable).cloned().collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o777)
}

fn judge(facts: &CertificateFacts, files: &TlsFiles, now: Timestamp) -> Vec<SetupFinding> {
    let finding =
        |object: &str, found: String| SetupFinding::ok(SetupCheck::Certificate, object, found);
    if let Some(error) = &facts.error {
        return vec![
            finding("api.tls_certificate", error.clone())
                .fail("name a readable PEM chain and its own key, or leave both out"),
        ];
    }
    let mut findings = vec![judge_life(facts.life, files, now)];
    if facts.key_mode & 0o077 != 0 {
        let (path, mode) = (files.key.display(), facts.key_mode);
        findings.push(
            finding("api.tls_key", format!("{path} has mode {mode:o}"))
                .warn(format!("let only its owner read it: chmod 600 {path}")),
        );
    }
    findings.extend(facts.unreadable.iter().map(|path| {
        let path = path.display();
        let found = format!("{path} cannot be read by the user that the service runs as");
        finding("api.tls_certificate", found)
            .warn(format!("give it to that user: chown USER {path}"))
    }));
    findings
}

fn judge_life(life: Option<CertificateLife>, files: &TlsFiles, now: Timestamp) -> SetupFinding {
    let path = files.certificate.display();
    let finding = |found: String| {
        let found = format!("{path} {found}");
        SetupFinding::ok(SetupCheck::Certificate, "api.tls_certificate", found)
    };
    let Some(life) = life else {
        return finding("has no dates that can be read".to_owned())
            .fail("have the certificate issued again");
    };
    if now < life.begins {
        let days = life.begins.since_ms(now).div_ceil(DAY_MS);
        return finding(format!("is valid in {days} days only"))
            .fail("correct the clock, or use a certificate that is valid now");
    }
    if now >= life.ends {
        return finding("has expired".to_owned()).fail("renew it");
    }
    let days = life.ends.since_ms(now) / DAY_MS;
    let found = finding(format!("fits its key and is valid for {days} more days"));
    if days < DAYS_MIN {
        return found.warn("renew it soon: clients refuse it afterwards");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::finding::FindingGrade::{self, Fail, Warn};

    const FINE: FindingGrade = FindingGrade::Ok;

    fn files(dir: &Path) -> TlsFiles {
        TlsFiles {
            certificate: dir.join("api.crt"),
            key: dir.join("api.key"),
        }
    }

    #[test]
    fn certificates_are_judged() {
        let day = |days: u64| Timestamp::from_ms(days * DAY_MS);
        let life = |begins: u64, ends: u64| {
            Some(CertificateLife {
                begins: day(begins),
                ends: day(ends),
            })
        };
        for (error, life, key_mode, unreadable, expected) in [
            (None, life(10, 200), 0o600, &[][..], &[FINE][..]),
            (None, life(10, 200), 0o640, &[][..], &[FINE, Warn]),
            (None, life(10, 113), 0o600, &[][..], &[Warn]),
            (None, life(10, 114), 0o600, &[][..], &[FINE]),
            (None, life(10, 100), 0o600, &[][..], &[Fail]),
            (None, life(101, 200), 0o600, &[][..], &[Fail]),
            (None, None, 0o600, &[], &[Fail]),
            (None, life(10, 200), 0o600, &["/k"], &[FINE, Warn]),
            (
                Some("cannot read".to_owned()),
                None,
                0o644,
                &[][..],
                &[Fail],
            ),
        ] {
            let facts = CertificateFacts {
                error,
                life,
                key_mode,
                unreadable: unreadable.iter().map(PathBuf::from).collect(),
            };
            let judged = judge(&facts, &files(Path::new("/etc/metalmesh")), day(100));
            let grades: Vec<_> = judged.iter().map(|finding| finding.grade).collect();
            assert_eq!(grades, expected, "{judged:?}");
        }
    }

    #[test]
    fn a_key_of_another_certificate_and_a_missing_file_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path());
        let now = Timestamp::from_ms(1);
        assert!(check(None, None, now).is_empty());
        let missing = check(Some(&files), None, now);
        assert_eq!(missing[0].grade, Fail);
        assert!(missing[0].found.contains("api.crt"), "{missing:?}");
        let made = rcgen::generate_simple_self_signed(vec!["mesh.example".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(vec!["mesh.example".to_owned()]).unwrap();
        std::fs::write(&files.certificate, made.cert.pem()).unwrap();
        std::fs::write(&files.key, other.signing_key.serialize_pem()).unwrap();
        // The check of the key needs the provider, which `main` installs; another test may have done it.
        drop(rustls::crypto::ring::default_provider().install_default());
        let foreign = check(Some(&files), None, now);
        assert_eq!(foreign[0].grade, Fail);
        assert!(
            foreign[0].found.contains("do not fit together"),
            "{foreign:?}"
        );
    }
}
