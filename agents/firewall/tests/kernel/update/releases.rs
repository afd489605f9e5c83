//! Releases of the agent, and configurations that want them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use proto_release::{
    FileDigest, PayloadEncoding, ReleaseManifest, ReleaseSigner, SignedHead, pack,
};

use crate::site::NETWORKS;

/// The rules of every configuration here.
pub(crate) const RULES: &str =
    "    cwnp: {egress: [{name: dns, ports: [{protocol: UDP, port: 53}]}]}\n";
/// A program that accepts every configuration and ends at once when it is run.
pub(crate) const CRASHES: &[u8] =
    b"#!/bin/sh\ncase \"$1\" in check) echo '{\"problems\": []}' ;; *) exit 3 ;; esac\n";
/// A program that accepts no configuration.
pub(crate) const REFUSES: &[u8] = b"#!/bin/sh\necho no such field >&2\nexit 1\n";

/// The program under test.
pub(crate) fn agent() -> Vec<u8> {
    fs::read(env!("CARGO_BIN_EXE_metalmesh-firewall")).unwrap()
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// SHA-256 of the signed head of a release.
pub(crate) fn head_digest(path: &str) -> String {
    let release = fs::read(path).unwrap();
    let (prefix, _) = release.split_at(SignedHead::PREFIX_BYTES);
    let length = SignedHead::PREFIX_BYTES + SignedHead::rest_bytes(prefix).unwrap();
    FileDigest::of(&release[..length])
        .unwrap()
        .digest
        .to_string()
}

/// A publisher of releases.
pub(crate) struct Releases {
    pub(crate) signer: ReleaseSigner,
    folder: PathBuf,
}

impl Releases {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            signer: ReleaseSigner::generate().unwrap(),
            folder: folder.to_owned(),
        }
    }

    /// The manifest and the payload of a program.
    pub(crate) fn manifest(
        version: &str,
        program: &[u8],
        encoding: PayloadEncoding,
    ) -> (ReleaseManifest, Vec<u8>) {
        let payload = pack(program, encoding).unwrap();
        let manifest = ReleaseManifest {
            name: "metalmesh-firewall".to_owned(),
            version: version.parse().unwrap(),
            architecture: std::env::consts::ARCH.to_owned(),
            mesh_level: 1,
            not_before_s: now_s() - 60,
            expires_s: now_s() + 3600,
            allow_downgrade_from: Vec::new(),
            encoding,
            payload: FileDigest::of(payload.as_slice()).unwrap(),
            program: FileDigest::of(program).unwrap(),
        };
        (manifest, payload)
    }

    /// Writes a release; returns its path.
    pub(crate) fn publish(
        &self,
        name: &str,
        version: &str,
        program: &[u8],
        change: impl FnOnce(&mut ReleaseManifest),
    ) -> String {
        let (mut manifest, payload) = Self::manifest(version, program, PayloadEncoding::Plain);
        change(&mut manifest);
        let head = self.signer.sign(&manifest).unwrap().encode();
        self.write(name, &[head, payload].concat())
    }

    /// Writes a file; returns its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A configuration that wants a version with this digest of its signed head.
    pub(crate) fn pinned(&self, version: &str, url: &str, digest: &str, more: &str) -> String {
        let pinned = format!("      controllerDigest: '{digest}'\n      controllerURL");
        self.config(version, url, more)
            .replacen("      controllerURL", &pinned, 1)
    }

    /// A configuration that wants a version, with more settings of self-update.
    pub(crate) fn config(&self, version: &str, url: &str, more: &str) -> String {
        let key = self.signer.public();
        format!(
            "{NETWORKS}      controllerVersion: '{version}'\n      controllerURL: '{url}'\n{RULES}\
             controllers:\n  firewall:\n    source: static\n    selfUpdate:\n      enabled: true\n\
             \x20     spreadSeconds: 0\n      keys: ['{key}']\n{more}  cwnp: {{source: static}}\n"
        )
    }
}
