//! Releases that break a rule are refused by its name, and nothing that runs changes.

use agents_update::{ProgramRole, UpdatePhase};
use proto_release::{PayloadEncoding, ReleaseManifest};

use super::releases::{CRASHES, REFUSES, Releases, now_s};
use super::server::ReleaseServer;
use super::supervised::{AgentHome, Supervised};
use super::{await_rules, trusting};
use crate::namespace::can_run;
use crate::site::Site;

/// Version of every release here.
const VERSION: &str = "0.4.0";

/// A release that breaks a rule: its file, and the begin of the error.
type Refused = (String, &'static str);

/// The name of a release, the begin of the error, and what is changed in its manifest.
type Change = (&'static str, &'static str, fn(&mut ReleaseManifest));

/// Releases whose manifest is signed, and breaks a rule.
fn of_manifests(releases: &Releases) -> Vec<Refused> {
    let changes: [Change; 6] = [
        ("architecture", "architecture: it is for riscv64", |own| {
            own.architecture = "riscv64".to_owned();
        }),
        ("name", "name: it is a release of metalmesh-core", |own| {
            own.name = "metalmesh-core".to_owned();
        }),
        ("version", "version: it is 0.4.1", |own| {
            own.version = "0.4.1".parse().unwrap();
        }),
        ("expired", "expiry: it was valid until", |own| {
            own.expires_s = now_s() - 1;
        }),
        ("early", "not-before: it is valid from", |own| {
            own.not_before_s = now_s() + 1000;
        }),
        (
            "refuses",
            "probe: the new program does not accept the configuration: no such field",
            |_| {},
        ),
    ];
    let mut list = Vec::new();
    for (name, begin, change) in changes {
        let program = if name == "refuses" { REFUSES } else { CRASHES };
        list.push((releases.publish(name, VERSION, program, change), begin));
    }
    list
}

/// Releases that were changed after they were signed, or not signed by a trusted key.
fn of_bytes(releases: &Releases, other: &Releases) -> Vec<Refused> {
    let (manifest, payload) = Releases::manifest(VERSION, CRASHES, PayloadEncoding::Zstd);
    let head = releases.signer.sign(&manifest).unwrap().encode();
    let whole = [head.clone(), payload.clone()].concat();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let foreign = other.signer.sign(&manifest).unwrap().encode();
    vec![
        (releases.write("manifest", &changed(40)), "signature: "),
        (
            releases.write("foreign", &[foreign, payload].concat()),
            "key: the release is signed with the key",
        ),
        (
            releases.write("payload", &changed(whole.len() - 1)),
            "digest: ",
        ),
        (releases.write("cut", &whole[..whole.len() - 1]), "size: "),
        (
            releases.write("head", &head[..head.len() - 1]),
            "format: the head is cut off",
        ),
        (
            releases.write("long", &[whole.clone(), vec![0]].concat()),
            "size: there are more than",
        ),
        (
            releases.write("other", b"#!/bin/sh\n"),
            "format: the file is no signed release",
        ),
        ("/nonexistent/release".to_owned(), "file: cannot read"),
        ("/dev/zero".to_owned(), "file: /dev/zero is no regular file"),
    ]
}

/// Places that nothing is fetched from.
fn of_places(server: &ReleaseServer) -> Vec<Refused> {
    let server = |path: &str| server.url(path);
    vec![
        (
            "http://127.0.0.1/release".to_owned(),
            "controllerURL: it is not https",
        ),
        (
            "https://10.0.0.1/release".to_owned(),
            "controllerURL: its address is local",
        ),
        (
            "https://[::ffff:10.0.0.1]/release".to_owned(),
            "controllerURL: its address is local",
        ),
        ("release".to_owned(), "controllerURL: it is no URL"),
        (server("missing"), "server: it answered with 404"),
        (server("to/http://127.0.0.1:8443/other"), "server: "),
        (server("to/https://169.254.169.254/latest"), "server: "),
        (
            server("to/https://127.0.0.1:8443/other"),
            "format: the file is no signed release",
        ),
        (server("endless"), "format: the file is no signed release"),
        ("https://127.0.0.1:1/release".to_owned(), "server: "),
    ]
}

#[test]
fn releases_that_break_a_rule_are_refused_by_its_name() {
    if !can_run() {
        return;
    }
    let site = Site::new("bad");
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let other = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let server = ReleaseServer::start(&site.router, folder.path());
    let more = trusting(&server);
    home.configure(&releases.config("0.1.0", "/nonexistent", &more));
    let supervised = Supervised::start(&home);
    home.await_status("the first", |status| status.phase == UpdatePhase::Current);
    let program = supervised.program();
    let mut list = of_manifests(&releases);
    list.extend(of_bytes(&releases, &other));
    list.extend(of_places(&server));
    let mut failures = 0;
    let list_url = list[0].0.clone();
    for (url, begin) in list {
        home.configure(&releases.config(VERSION, &url, &more));
        home.await_status(&url, |status| {
            status.last_error.starts_with(begin) && status.failures > failures
        });
        let status = home.status().unwrap();
        assert_eq!(status.phase, UpdatePhase::Failed, "{url}");
        assert_eq!(status.role, ProgramRole::Installed);
        failures = status.failures;
    }
    // A server that another authority certifies.
    let unknown = more.replace("ca.pem", "other.pem");
    let other = ReleaseServer::certificate();
    std::fs::write(folder.path().join("other.pem"), other).unwrap();
    home.configure(&releases.config(VERSION, &server.url("expired"), &unknown));
    home.await_status("another authority", |status| {
        status.last_error.starts_with("server: ") && status.failures > failures
    });
    // A release of that version that a trusted key has signed, and another one than the source names.
    let named = format!("sha256:{}", "ab".repeat(32));
    home.configure(&releases.pinned(VERSION, &list_url, &named, &more));
    home.await_status("another head", |status| {
        status.last_error.starts_with("controllerDigest: ") && status.failures > failures
    });
    // Without a version that can be used nothing is fetched.
    home.configure(&releases.config("latest", &server.url("expired"), &more));
    home.await_status("no version", |status| {
        status.phase == UpdatePhase::NothingWanted
            && status.last_error.starts_with("controllerVersion: ")
    });
    assert_eq!(supervised.codes(), []);
    assert_eq!(supervised.program(), program);
    await_rules(&site);
}
