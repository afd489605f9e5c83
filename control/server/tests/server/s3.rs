//! An S3-compatible store as a process of its own: moto's, over TLS on loopback.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::python;

const PACKAGE: &str = "moto[server]==5.1.16";

/// An authority and a certificate of it for 127.0.0.1, as files.
pub(crate) struct Authority {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// Makes both in `dir`.
    pub(crate) fn new(dir: &Path) -> Self {
        Self::made(dir, rcgen::date_time_ymd(2100, 1, 1))
    }

    /// The same with a certificate that has ended.
    pub(crate) fn over(dir: &Path) -> Self {
        Self::made(dir, rcgen::date_time_ymd(2020, 1, 1))
    }

    fn made(dir: &Path, until: time::OffsetDateTime) -> Self {
        use rcgen::{
            BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
        };
        fs::create_dir_all(dir).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // A name of its own: the store's certificate must not look as if it signed itself.
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "authority of the store");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let ca_key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(params, ca_key);
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.use_authority_key_identifier_extension = true;
        params.not_after = until;
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let files = ["ca.crt", "store.crt", "store.key"].map(|name| dir.join(name));
        fs::write(&files[0], ca.pem()).unwrap();
        fs::write(&files[1], certificate.pem()).unwrap();
        fs::write(&files[2], key.serialize_pem()).unwrap();
        let [ca, certificate, key] = files;
        Self {
            ca,
            certificate,
            key,
        }
    }
}

/// A running store with a bucket `backups` and a user who may do everything there.
pub(crate) struct S3 {
    child: Child,
    python: PathBuf,
    ca: PathBuf,
    pub(crate) address: String,
    pub(crate) access_key_file: PathBuf,
    pub(crate) secret_key_file: PathBuf,
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/server")
        .join(name)
}

impl S3 {
    /// Starts it with old objects of these names; none, with a printed reason, where it cannot be
    /// had.
    pub(crate) fn start(dir: &Path, authority: &Authority, names: &[&str]) -> Option<Self> {
        let python = match python::environment(PACKAGE) {
            Ok(python) => python,
            Err(reason) => {
                println!("SKIPPED: {PACKAGE} cannot be installed: {reason}");
                return None;
            }
        };
        let (access_key_file, secret_key_file) = (dir.join("access"), dir.join("secret"));
        let mut child = Command::new(&python)
            .arg(script("s3_server.py"))
            .args([&authority.certificate, &authority.key])
            .args([&access_key_file, &secret_key_file])
            .args(names)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(dir.join("s3.log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(Ok(address)) = lines.next() else {
            let log = fs::read_to_string(dir.join("s3.log")).unwrap();
            panic!("the store ended:\n{log}");
        };
        Some(Self {
            child,
            python,
            ca: authority.ca.clone(),
            address,
            access_key_file,
            secret_key_file,
        })
    }

    fn ask(&self, more: &[&str]) -> Vec<String> {
        let output = Command::new(&self.python)
            .arg(script("s3_client.py"))
            .arg(&self.address)
            .args([&self.ca, &self.access_key_file, &self.secret_key_file])
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Names of what is there, in order; of uploads that were not finished with that remark.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.ask(&[]);
        names.sort();
        names
    }

    /// Copies an object into a file.
    pub(crate) fn copy(&self, name: &str, file: &Path) {
        self.ask(&[name, file.to_str().unwrap()]);
    }
}

impl S3 {
    /// Ends it; nobody listens there any more.
    pub(crate) fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.end();
    }
}
