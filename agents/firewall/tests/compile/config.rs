//! The configuration file: the seed's own, and what is refused.

use agents_firewall::config::{Config, ConfigError};

const GARDENER: &str = "
name: shoot--abc--cluster-firewall-def
sources:
  seed:
    kubeconfig: /etc/firewall-controller/seed.yaml
    namespace: shoot--abc--cluster
  shoot:
    kubeconfig: /etc/firewall-controller/shoot.yaml
    namespace: firewall

controllers:
  firewall:
    source: seed

    selfUpdate:
      enabled: true
    droptailer:
      enabled: true

  service:
    source: shoot
  cwnp:
    source: shoot
  monitor:
    source: shoot
";

/// The example of the package.
const EXAMPLE: &str = include_str!("../../metalmesh-firewall.example.yaml");

#[test]
fn the_example_of_the_package_is_good_and_whole() {
    let lines = EXAMPLE.lines();
    let all: String = lines
        .map(|line| format!("{}\n", line.strip_prefix("#: ").unwrap_or(line)))
        .collect();
    for text in [EXAMPLE, &all] {
        assert!(Config::parse(text).unwrap().sources.metal.is_some());
    }
    let config = Config::parse(&all).unwrap();
    assert!(config.sources.static_.is_some() && config.name.is_some());
}

const STATIC: &str = "
name: most-restricted-firewall-ever

sources:
  static:
    firewall:
      controllerURL: https://example.com/controller
    cwnp:
      egress: []
      ingress: []

controllers:
  firewall:
    source: static

  cwnp:
    source: static
";

const USERDATA: &str = "---
sources:
  static: {}
controllers:
  firewall:
    source: static
";

fn error(text: &str) -> String {
    match Config::parse(text) {
        Ok(_) => String::new(),
        Err(error @ ConfigError::Field { .. }) => error.to_string(),
        Err(other) => panic!("{other:?}"),
    }
}

const PLAIN: &str = "
name: best-firewall-ever

sources:
  metal:
    url: https://metal-api
    hmac: some-hmac
    type: Metal-View
    projectID: abc

controllers:
  firewall:
    source: metal
    selfUpdate:
      enabled: true
    droptailer:
      enabled: true

  cwnp:
    # firewall rules stored in firewall entity
    source: metal
";

/// Of the proposal's `MetalStackCluster`, with the variables filled in.
const WORKLOAD: &str = "
name: c1-firewall

sources:
  shoot:
    kubeconfig: /etc/firewall-controller/workload.yaml
    namespace: firewall
  static: {}

controllers:
  firewall:
    source: static
    selfUpdate:
      enabled: true
    droptailer:
      enabled: true

  service:
    source: shoot
  cwnp:
    source: shoot
  monitor:
    source: shoot
";

/// A public key of releases.
const KEY: &str = "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// A configuration of the proposal with a key of releases, which self-update needs.
fn trusting(text: &str) -> String {
    let enabled = "      enabled: true\n    droptailer";
    let keys = format!("      enabled: true\n      keys: ['{KEY}']\n    droptailer");
    text.replace(enabled, &keys)
}

#[test]
fn self_update_needs_keys() {
    let without = Config::parse(GARDENER).unwrap().notices();
    assert!(without[0].contains("has no effect without the keys"));
    let disabled = GARDENER.replacen("enabled: true", "enabled: false", 1);
    let disabled = Config::parse(&disabled).unwrap();
    assert_eq!(disabled.notices(), Vec::<&str>::new());
    let trusting = Config::parse(&trusting(GARDENER)).unwrap();
    assert_eq!(trusting.notices(), Vec::<&str>::new());
    let head =
        "sources: {static: {}}\ncontrollers:\n  firewall:\n    source: static\n    selfUpdate:\n";
    for (fields, expected) in [
        (
            "      enabled: true\n      keys:\n      - ed25519:AAAA\n",
            "line 8: controllers.firewall.selfUpdate.keys[0]: it is no public key of releases; write \
             it as `metalmesh release keygen` prints it",
        ),
        (
            "      enabled: true\n      key: a\n",
            "line 7: controllers.firewall.selfUpdate: unknown field `key`",
        ),
        (
            "      keys: []\n",
            "line 6: controllers.firewall.selfUpdate: missing field `enabled`",
        ),
        (
            "      enabled: false\n      spreadSeconds: 3601\n",
            "line 7: controllers.firewall.selfUpdate.spreadSeconds: it is more than 3600; use 0 to 3600",
        ),
        (
            "      enabled: false\n      localPrefixes: [10.0.0.0/33]\n",
            "line 7: controllers.firewall.selfUpdate.localPrefixes",
        ),
    ] {
        let found = error(&format!("{head}{fields}"));
        assert!(found.starts_with(expected), "{found}");
    }
    let inline = "sources: {static: {}}\ncontrollers:\n  firewall: {source: static, selfUpdate: {enabled: true, spreadSeconds: 3601}}\n";
    assert!(error(inline).starts_with("line 3: controllers.firewall.selfUpdate.spreadSeconds: "));
    let metal = format!(
        "sources: {{metal: {{}}}}\ncontrollers: {{firewall: {{source: metal, selfUpdate: {{enabled: \
         true, keys: ['{KEY}']}}}}}}"
    );
    assert_eq!(Config::parse(&metal).unwrap().notices(), Vec::<&str>::new());
}

#[test]
fn the_configurations_of_the_proposal_are_read() {
    let gardener = Config::parse(GARDENER).unwrap();
    assert_eq!(gardener.name(), "shoot--abc--cluster-firewall-def");
    assert!(gardener.controllers.firewall.droptailer.enabled);
    assert!(gardener.controllers.firewall.self_update.enabled);
    assert_eq!(gardener.notices().len(), 1, "selfUpdate without keys");
    let sources: Vec<&str> = gardener
        .controllers
        .sources()
        .map(|source| source.name())
        .collect();
    assert_eq!(sources, ["seed", "shoot", "shoot", "shoot"]);
    assert_eq!(
        Config::parse(STATIC).unwrap().name(),
        "most-restricted-firewall-ever"
    );
    assert!(!Config::parse(USERDATA).unwrap().name().is_empty());
    assert_eq!(Config::parse(WORKLOAD).unwrap().name(), "c1-firewall");
    assert!(error(PLAIN).starts_with("line 6: sources.metal.url: control's address"));
    let hmac = PLAIN.replace("    url: https://metal-api\n", "");
    assert!(error(&hmac).starts_with("line 6: sources.metal.hmac: a shared secret"));
}

#[test]
fn control_is_a_source_of_every_controller_but_the_monitor() {
    let text = "sources: {metal: {projectID: abc}}\ncontrollers: {firewall: {source: metal}, cwnp: \
                {source: metal}, service: {source: metal}}";
    let metal = Config::parse(text).unwrap().sources.metal.unwrap();
    assert_eq!(metal.project_id.as_deref(), Some("abc"));
}

#[test]
fn sources_that_cannot_be_followed_are_refused() {
    for (from, to, expected) in [
        (
            "namespace: firewall",
            "namespace: ../x",
            "line 8: sources.shoot.namespace: it is no name of a namespace; use at most 63 small \
             letters, digits and `-`",
        ),
        (
            "name: shoot--abc--cluster-firewall-def",
            "name: A/b",
            "line 13: controllers.firewall.source: `name`, or the name of this host, is no name of \
             a Firewall in Kubernetes; set `name` to that of the Firewall",
        ),
        (
            "source: seed",
            "source: shoot",
            "line 13: controllers.firewall.source: the shoot has nothing for the firewall; use \
             seed, metal or static",
        ),
    ] {
        assert_eq!(error(&GARDENER.replace(from, to)), expected);
    }
}

#[test]
fn errors_name_line_field_and_remedy() {
    let firewall = "sources: {static: {}}\ncontrollers:\n  firewall:\n    source: static\n";
    let cases = [
        (
            "sources: {}\ncontrollers:\n  firewall:\n    source: static\n".to_owned(),
            "line 4: controllers.firewall.source: the source static is not declared; add \
             sources.static, or name a source that is declared",
        ),
        (
            "sources: {static: {}}\ncontrollers:\n  firewall:\n    source: [static, metal]\n"
                .to_owned(),
            "line 4: controllers.firewall.source: a controller has one source; name one of seed, \
             shoot, metal, static, and move what the others say into it",
        ),
        (
            format!("{firewall}    source: metal\n"),
            "line 4: controllers.firewall: duplicate field `source`; keep one of them",
        ),
        (
            format!("{firewall}    sorce: metal\n"),
            "line 5: controllers.firewall: unknown field `sorce`, expected one of `source`, \
             `selfUpdate`, `droptailer`, `probes`; correct its name, or remove it",
        ),
        (
            "sources:\n  metal:\n    url: https://metal-api\n".to_owned(),
            "line 3: sources.metal.url: control's address is not configured here, because it came \
             with the firewall's join ticket; remove `url`, and join the agent to control",
        ),
        (
            "sources:\n  metal:\n    hmac: some-hmac\n".to_owned(),
            "line 3: sources.metal.hmac: a shared secret would let one firewall read every \
             project, so the firewall's mesh identity replaces it; remove `hmac`, and join the \
             agent to control",
        ),
        (
            format!("{firewall}  monitor:\n    source: static\n"),
            "line 6: controllers.monitor.source: the monitor cannot report to static; use shoot, \
             or remove controllers.monitor",
        ),
        (
            "sources: {static: {}}\ncontrollers:\n  cwnp:\n    source: static\n".to_owned(),
            "line 3: controllers: missing field `firewall`; add it",
        ),
        // Without these rules more would pass.
        (
            "sources:\n  static:\n    firewall:\n      rules:\n".to_owned(),
            "line 4: sources.static.firewall.rules: it has no value; give it one, or remove it",
        ),
    ];
    let found: Vec<String> = cases.iter().map(|case| error(&case.0)).collect();
    let expected: Vec<&str> = cases.iter().map(|case| case.1).collect();
    assert_eq!(found, expected);
    for text in [
        "",
        "a",
        "- b",
        "sources:\n\t- x",
        "name: &a [*a]",
        "sources: &a {static: *a}",
    ] {
        assert!(!error(text).is_empty(), "{text:?}");
    }
}

#[test]
fn a_deeply_nested_text_is_refused_before_it_is_parsed() {
    for text in [
        format!("sources: {}", "[".repeat(250_000)),
        format!("sources: {}", "{a: ".repeat(50_000)),
        "- ".repeat(50_000),
    ] {
        let found = error(&text);
        assert!(
            found.contains("nested deeper than 64 levels, by brackets or by `- ` on one line"),
            "{found}"
        );
    }
}

#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [
        pipe.as_path(),
        folder.path(),
        std::path::Path::new("/dev/zero"),
    ] {
        let found = Config::read(path).unwrap_err();
        let cause = std::error::Error::source(&found).unwrap().to_string();
        assert!(
            cause.contains("no regular file"),
            "{}: {cause}",
            path.display()
        );
    }
}
