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

#[test]
fn the_configurations_of_the_proposal_are_read() {
    let gardener = Config::decode(GARDENER).unwrap();
    assert_eq!(gardener.name(), "shoot--abc--cluster-firewall-def");
    assert!(gardener.controllers.firewall.self_update);
    assert!(gardener.controllers.firewall.droptailer.enabled);
    assert_eq!(
        Config::parse(STATIC).unwrap().name(),
        "most-restricted-firewall-ever"
    );
    assert!(!Config::parse(USERDATA).unwrap().name().is_empty());
}

#[test]
fn what_is_not_served_is_refused() {
    assert_eq!(
        error(GARDENER),
        "line 13: controllers.firewall.source: this version does not serve the source seed yet; \
         use static"
    );
    let plain = "sources: {metal: {projectID: abc}}\ncontrollers: {firewall: {source: metal}}";
    assert_eq!(
        error(plain),
        "line 0: controllers.firewall.source: this version does not serve the source metal yet; \
         use static"
    );
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
            format!("{firewall}    selfUpdate:\n      enabled: true\n"),
            "line 5: controllers.firewall.selfUpdate.enabled: this version does not have it; set \
             it to false, or remove it",
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
