use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::{admin, api, infra};

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn rules<R: Request>(request: &R) -> Vec<(String, &'static str)> {
    match validate_request(request, now()) {
        Ok(()) => Vec::new(),
        Err(found) => found.iter().map(|v| (v.field.clone(), v.rule)).collect(),
    }
}

const UUID: &str = "00000000-0000-0000-0000-000000000001";

#[test]
fn every_rule_of_the_contract_is_known() {
    Plans::compile(crate::pool()).unwrap();
}

/// A rule whose expression changes must be ported again.
#[test]
fn the_ported_expressions_are_those_of_the_contract() {
    let pool = crate::pool();
    let predefined = pool
        .get_extension_by_name("buf.validate.predefined")
        .unwrap();
    let mut text = String::new();
    for extension in pool.all_extensions() {
        let options = extension.options();
        if extension.parent_file().name() != "metalstack/api/v2/predefined_rules.proto" {
            continue;
        }
        let value = options.get_extension(&predefined);
        let cel = value
            .as_message()
            .unwrap()
            .get_field_by_name("cel")
            .unwrap()
            .into_owned();
        let cel = cel.as_list().unwrap()[0].as_message().unwrap().clone();
        let get = |name: &str| {
            cel.get_field_by_name(name)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        let line = format!("{} {} {}\n", extension.name(), get("id"), get("expression"));
        text.push_str(&line);
    }
    assert_eq!(text.trim(), include_str!("predefined.txt").trim());
}

#[test]
fn violations_name_field_and_rule() {
    let get = api::v2::IpServiceGetRequest {
        ip: "1.2.3".into(),
        ..Default::default()
    };
    let error = validate_request(&get, now()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "validation errors:\n - ip: must be an IP address\n - project: must not be empty: must be \
         a UUID"
    );
    let get = api::v2::IpServiceGetRequest {
        project: "x".into(),
        ip: "::1".into(),
        ..get
    };
    let error = validate_request(&get, now()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "validation error: project: must be a UUID"
    );
    assert_eq!(rules(&get), [("project".to_owned(), "string.uuid")]);
}

#[test]
fn presence_required_oneof_and_depth() {
    let mut update = api::v2::ProjectServiceUpdateRequest {
        project: UUID.into(),
        name: Some("x".into()),
        labels: Some(api::v2::UpdateLabels { strategy: None }),
        ..Default::default()
    };
    let expected = [
        ("update_meta".to_owned(), "required"),
        ("name".to_owned(), "string.is_name"),
        ("labels.strategy".to_owned(), "required"),
    ];
    assert_eq!(rules(&update), expected);
    update.name = None;
    update.update_meta = Some(api::v2::UpdateMeta {
        locking_strategy: 9,
        ..Default::default()
    });
    let patch = api::v2::LabelsPatch {
        remove: vec!["a".into(), "a".into()],
        ..Default::default()
    };
    let strategy = Some(api::v2::update_labels::Strategy::Patch(patch));
    update.labels = Some(api::v2::UpdateLabels { strategy });
    let expected = [
        (
            "update_meta.locking_strategy".to_owned(),
            "enum.defined_only",
        ),
        ("labels.patch.remove".to_owned(), "repeated.unique"),
    ];
    assert_eq!(rules(&update), expected);
}

#[test]
fn maps_durations_and_times() {
    let create = api::v2::TokenServiceCreateRequest {
        expires: Some(prost_types::Duration {
            seconds: 31_536_001,
            nanos: 0,
        }),
        project_roles: [("x ".to_owned(), 7)].into(),
        tenant_roles: [("any".to_owned(), 1)].into(),
        ..Default::default()
    };
    let expected = [
        ("expires".to_owned(), "duration.gte_lt"),
        ("project_roles".to_owned(), "map.keys_trimmed"),
        ("project_roles".to_owned(), "project_roles.key.valid"),
        ("project_roles[\"x \"]".to_owned(), "enum.defined_only"),
    ];
    assert_eq!(rules(&create), expected);
    let ping = infra::v2::ComponentServicePingRequest {
        r#type: 1,
        identifier: "pixie".into(),
        started_at: Some(prost_types::Timestamp {
            seconds: 1_700_000_000,
            nanos: 0,
        }),
        interval: Some(prost_types::Duration {
            seconds: 5,
            nanos: 0,
        }),
        version: None,
    };
    assert_eq!(
        rules(&ping),
        [("started_at".to_owned(), "timestamp.lt_now")]
    );
}

#[test]
fn ignored_when_zero_but_not_when_wrong() {
    let list = |project: &str| api::v2::NetworkServiceListRequest {
        project: project.to_owned(),
        ..Default::default()
    };
    assert_eq!(rules(&list("")), []);
    assert_eq!(rules(&list("x")), [("project".to_owned(), "string.uuid")]);
}

#[test]
fn reports_are_bounded() {
    let partition = api::v2::Partition {
        id: "p1".into(),
        dns_servers: vec![api::v2::DnsServer::default(); 500],
        ..Default::default()
    };
    let create = admin::v2::PartitionServiceCreateRequest {
        partition: Some(partition),
    };
    assert_eq!(rules(&create).len(), VIOLATIONS_MAX);
}

/// Not a promise, a look: `cargo test -p proto-public --release --lib -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn speed() {
    const ROUNDS: u32 = 100_000;
    let create = api::v2::MachineServiceCreateRequest {
        project: UUID.into(),
        name: "web".into(),
        image: "debian-12".into(),
        networks: vec![api::v2::MachineAllocationNetwork {
            network: "net".into(),
            ips: vec![],
        }],
        allocation_type: 1,
        ..Default::default()
    };
    assert_eq!(rules(&create), []);
    let start = std::time::Instant::now();
    for _ in 0..ROUNDS {
        validate_request(std::hint::black_box(&create), now()).unwrap();
    }
    println!("{:?} per request", start.elapsed() / ROUNDS);
}
