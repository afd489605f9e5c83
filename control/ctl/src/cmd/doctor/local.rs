//! Checks from this host: files, addresses, clocks.

use super::facts::DoctorFacts;
use super::level::{FindingLevel, high, low};
use super::probed::{PrivateFile, ProbedNode};
use super::report::DoctorFinding;

/// Clock offset from which a warning is given, milliseconds.
const SKEW_WARN_MS: u64 = 2_000;
/// Clock offset from which the check fails, milliseconds: sessions and deadlines break.
const SKEW_FAIL_MS: u64 = 60_000;
const DAY_S: i64 = 86_400;
/// Remaining validity of the API's certificate below which a warning is given, days.
const CERTIFICATE_WARN_DAYS: i64 = 21;
/// Remaining validity of the API's certificate below which the check fails, days.
const CERTIFICATE_FAIL_DAYS: i64 = 3;

fn is_exposed(file: &PrivateFile) -> bool {
    file.mode & 0o077 != 0
}

pub(super) fn context_file(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let found = match &facts.context {
        None => DoctorFinding::ok("there is no context file"),
        Some(file) if is_exposed(file) => DoctorFinding::fail(
            format!("{} may be read by others (mode {:o})", file.path, file.mode),
            "it has a token: whoever reads it is you",
            format!("chmod 600 {}", file.path),
        ),
        Some(file) => DoctorFinding::ok(format!("{} is its owner's alone", file.path)),
    };
    vec![found]
}

pub(super) fn key_files(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let why = "it is, or unseals, a private key of the cluster";
    let here = facts
        .keys
        .iter()
        .filter(|file| is_exposed(file))
        .map(|file| {
            let what = format!("{} may be used by others (mode {:o})", file.path, file.mode);
            DoctorFinding::fail(what, why, format!("chmod go= {}", file.path))
        });
    let there = facts.answers().flat_map(|node| {
        node.exposed.iter().map(|file| {
            let what = format!("node {}: {file} may be used by others", node.node);
            let path = file.split(" (mode").next().unwrap_or(file);
            let mend = format!("chmod go= {path} (on node {})", node.node);
            DoctorFinding::fail(what, why, mend)
        })
    });
    let mut found: Vec<DoctorFinding> = here.chain(there).collect();
    if found.is_empty() {
        let nodes = facts.answers().count();
        found.push(DoctorFinding::ok(format!(
            "keys of {nodes} nodes are their owner's alone"
        )));
    }
    found
}

pub(super) fn api(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    facts.nodes.iter().map(api_of).collect()
}

fn api_of(node: &ProbedNode) -> DoctorFinding {
    let url = &node.url;
    match (&node.tcp_ms, &node.said) {
        (Ok(ms), Ok(said)) => {
            DoctorFinding::ok(format!("{url} is node {}; connected in {ms} ms", said.node))
        }
        (Err(error), _) => DoctorFinding::fail(
            format!("{url} cannot be reached: {error}"),
            "the node is down, or something on the way drops TCP",
            "systemctl status metalmeshd (on that host)",
        ),
        (Ok(_), Err(error)) => DoctorFinding::fail(
            format!("{url} does not answer: {error}"),
            "something listens there, but it is no control node that lets you in",
            "metalmesh whoami",
        ),
    }
}

pub(super) fn api_certificate(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let mut found = Vec::new();
    for node in &facts.nodes {
        let Ok(said) = &node.said else { continue };
        let Some(ends) = &said.api_certificate_ends else {
            found.push(plain(node));
            continue;
        };
        let days = (ends.seconds - facts.now_s).div_euclid(DAY_S);
        let what = format!(
            "node {}: the API's certificate ends in {days} days",
            said.node
        );
        let why = "clients refuse the node from then on";
        let mend = format!("replace api.tls_certificate and restart node {}", said.node);
        let level = low(days, CERTIFICATE_WARN_DAYS, CERTIFICATE_FAIL_DAYS);
        found.push(DoctorFinding::graded(level, what, why, mend));
    }
    if found.is_empty() {
        let error = facts.silence();
        found.push(DoctorFinding::unknown(
            "the end of the API's certificate",
            &error,
        ));
    }
    found
}

/// Judges a node without a certificate: plain HTTP is safe on loopback alone.
fn plain(node: &ProbedNode) -> DoctorFinding {
    let host = super::probe::host_and_port(&node.url).map(|(host, _)| host);
    let is_local = host.is_some_and(|host| {
        let ip: Result<std::net::IpAddr, _> = host.trim_matches(['[', ']']).parse();
        host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    });
    let is_tls = node.url.starts_with("https:");
    let what = format!("{} speaks plain HTTP", node.url);
    if is_local || is_tls {
        return DoctorFinding::ok(format!("{what} to this host or a proxy alone"));
    }
    let why = "tokens go over the network for all to read";
    let mend = "set api.tls_certificate and api.tls_key in the node's configuration";
    DoctorFinding::fail(what, why, mend)
}

pub(super) fn mesh(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    if facts.mesh.is_empty() {
        let error = facts.cluster.as_ref().err().cloned();
        let error = error.unwrap_or_else(|| "no node has named an address".to_owned());
        return vec![DoctorFinding::unknown("where agents call", &error)];
    }
    let is_none_there = facts.mesh.iter().all(|probed| probed.quic_ms.is_err());
    let told = facts.mesh.iter().map(|probed| {
        let (node, address) = (probed.node, &probed.address);
        let error = match &probed.quic_ms {
            Ok(ms) => {
                let what = format!("node {node} speaks QUIC at {address}; answered in {ms} ms");
                return DoctorFinding::ok(what);
            }
            Err(error) => error,
        };
        let what = format!("node {node} does not speak QUIC at {address}: {error}");
        let why = "the node is down, or something between here and there drops UDP; agents that \
                   are cut off like this go on with what they were told last";
        let mend = "metalmesh cluster status; then let UDP through to that port";
        match is_none_there {
            true => DoctorFinding::fail(what, why, mend),
            false => DoctorFinding::warn(what, why, mend),
        }
    });
    told.collect()
}

pub(super) fn clock(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let told = facts.nodes.iter().filter_map(|node| {
        let (skew, error) = node.skew_ms?;
        let number = node.said.as_ref().map_or(0, |said| said.node);
        let apart = skew.unsigned_abs().saturating_sub(error);
        let side = if skew < 0 { "behind" } else { "ahead of" };
        let what = format!(
            "the clock of node {number} is {} ms {side} the one here",
            skew.unsigned_abs()
        );
        let why = "certificates and deadlines are judged by these clocks";
        let mend = "timedatectl set-ntp true (on the host whose clock is wrong)";
        Some(match high(apart, SKEW_WARN_MS, SKEW_FAIL_MS) {
            FindingLevel::Ok => {
                DoctorFinding::ok(format!("the clock of node {number} is the one here"))
            }
            level => DoctorFinding::graded(level, what, why, mend),
        })
    });
    let mut told: Vec<DoctorFinding> = told.collect();
    if told.is_empty() {
        told.push(DoctorFinding::unknown("the nodes' time", &facts.silence()));
    }
    told
}
