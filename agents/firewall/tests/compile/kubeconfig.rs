//! Kubeconfigs: what is used of them, and what is refused.

use agents_firewall::source::kubernetes::Kubeconfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

fn authority() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["ca".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    STANDARD.encode(certificate.pem())
}

/// A kubeconfig with other fields in its cluster and its user.
fn kubeconfig(ca: &str, cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
preferences: {{}}
current-context: own
contexts:
- {{name: own, context: {{cluster: c, user: u, namespace: x}}}}
clusters:
- {{name: c, cluster: {{certificate-authority-data: {ca}, {cluster}}}}}
users:
- {{name: u, user: {{{user}}}}}
"
    )
}

const SERVER: &str = "server: 'https://127.0.0.1:6443'";

#[test]
fn a_kubeconfig_with_everything_in_it_is_used() {
    let ca = authority();
    for (cluster, user) in [
        (SERVER, "token: abc"),
        (
            "server: 'https://api.example.com/k8s/clusters/c'",
            "token: abc",
        ),
        (
            "server: 'https://[::1]:6443', tls-server-name: kubernetes",
            "token: abc",
        ),
    ] {
        let text = kubeconfig(&ca, cluster, user);
        let read = Kubeconfig::parse(text.as_bytes());
        assert!(read.is_ok(), "{cluster}: {:?}", read.err());
        assert!(!format!("{:?}", read.unwrap()).contains("abc"));
    }
}

#[test]
fn what_reaches_out_of_a_kubeconfig_is_refused() {
    let ca = authority();
    let with = |cluster: &str, user: &str| kubeconfig(&ca, cluster, user);
    let cases = [
        (with(SERVER, "exec: {command: sh}"), "users[0].user.exec: "),
        (
            with(SERVER, "auth-provider: {name: gcp}"),
            "users[0].user.auth-provider: ",
        ),
        (
            with(SERVER, "tokenFile: /etc/shadow"),
            "users[0].user.tokenFile: ",
        ),
        (
            with(SERVER, "token: a, client-certificate: /x"),
            "users[0].user.client-certificate: ",
        ),
        (
            with(SERVER, "token: a, client-key: /x"),
            "users[0].user.client-key: ",
        ),
        (
            with(SERVER, "username: a, password: b"),
            "users[0].user.username: ",
        ),
        (with(SERVER, "token: a, as: admin"), "users[0].user.as: "),
        (with(SERVER, "token: a, other: b"), "users[0].user.other: "),
        (with(SERVER, "token: \"a\\nb\""), "users[0].user.token: "),
        (with(SERVER, "token: [a]"), "users[0].user.token: "),
        (with(SERVER, ""), "users[0].user.token: "),
        (
            with(SERVER, "client-key-data: YQ=="),
            "users[0].user.client-certificate-data: ",
        ),
        (
            with(SERVER, "client-certificate-data: '%'"),
            "users[0].user.client-certificate-data: ",
        ),
        (
            with("server: 'http://x'", "token: a"),
            "clusters[0].cluster.server: ",
        ),
        (
            with("server: 'https://u:p@x'", "token: a"),
            "clusters[0].cluster.server: ",
        ),
        (
            with("server: x", "token: a"),
            "clusters[0].cluster.server: ",
        ),
        (
            with(
                &format!("{SERVER}, insecure-skip-tls-verify: true"),
                "token: a",
            ),
            "clusters[0].cluster.insecure-skip-tls-verify: ",
        ),
        (
            with(&format!("{SERVER}, proxy-url: 'http://evil'"), "token: a"),
            "clusters[0].cluster.proxy-url: ",
        ),
        (
            with(&format!("{SERVER}, certificate-authority: /x"), "token: a"),
            "clusters[0].cluster.certificate-authority: ",
        ),
        (
            kubeconfig("''", SERVER, "token: a"),
            "clusters[0].cluster.certificate-authority-data: ",
        ),
        (
            kubeconfig("YQ==", SERVER, "token: a"),
            "clusters[0].cluster.certificate-authority-data: ",
        ),
        (
            with(SERVER, "token: a").replace("user: u,", "user: v,"),
            "contexts[0].context.user: ",
        ),
        (
            with(SERVER, "token: a").replace("current-context: own", ""),
            "current-context: ",
        ),
        (
            with(SERVER, "token: a").replace("current-context: own", "current-context: x"),
            "current-context: ",
        ),
        ("users: secret".to_owned(), "users: "),
        ("secret".to_owned(), "the file: "),
        ("a: [secret".to_owned(), "line "),
        (" ".repeat(1 << 20), "the kubeconfig is larger"),
        ("a: &a [b]\nc: [*a, *a]".to_owned(), "a: "),
    ];
    for (text, expected) in &cases {
        let error = Kubeconfig::parse(text.as_bytes()).err();
        let error = error.map_or_else(String::new, |error| error.to_string());
        assert!(error.starts_with(expected), "{expected}: {error:?}");
        assert!(error.contains("; "), "a remedy: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn an_entry_that_is_not_used_is_checked_too() {
    let text = kubeconfig(&authority(), SERVER, "token: abc") + "- {name: v, user: {exec: {}}}\n";
    let error = Kubeconfig::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("users[1].user.exec: "), "{error}");
}

#[test]
fn brackets_are_counted_before_they_are_parsed() {
    for text in [
        format!("contexts: {}", "[".repeat(250_000)),
        format!("contexts: {}", "[ # ]\n".repeat(2000)),
        format!("contexts: {}", "{a: ".repeat(2000)),
        format!("contexts:\n  {}", "- ".repeat(50_000)),
    ] {
        let found = Kubeconfig::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(found.contains("more than 1024 brackets"), "{found}");
    }
}
