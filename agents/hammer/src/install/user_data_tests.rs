use proto_mesh::Image;
use serde_json::json;

use super::*;

const IGNITION: &str = IGNITION_PATHS[3];

fn order(data: &str) -> Install {
    Install {
        allocation_uuid: "a-1".into(),
        hostname: "web-1".into(),
        image: Some(Image {
            id: "debian-12".into(),
            ..Image::default()
        }),
        userdata: data.as_bytes().to_vec(),
        ..Install::default()
    }
}

fn with(cloud_init: bool, has_ignition: bool) -> ImageFeatures {
    ImageFeatures {
        cloud_init,
        ignition: has_ignition.then_some(IGNITION),
        ..ImageFeatures::default()
    }
}

#[test]
fn data_goes_to_the_one_that_carries_it_out() {
    let config = r#" {"ignition":{"version":"3.3.0"}}"#;
    for (data, cloud_init, has_ignition, want) in [
        ("", true, true, Handling::Nothing),
        (config, true, true, Handling::Ignition(IGNITION)),
        (config, false, true, Handling::Ignition(IGNITION)),
        ("#cloud-config\n", true, true, Handling::CloudInit),
        ("#!/bin/sh\n", true, false, Handling::CloudInit),
        ("MIME-Version: 1.0\n", true, false, Handling::CloudInit),
        (r#"{"a":1}"#, true, true, Handling::CloudInit),
        ("#!/bin/sh\n", false, true, Handling::Kept),
        (r#"{"a":1}"#, false, true, Handling::Kept),
        ("{ no json", false, true, Handling::Kept),
        ("of a program of the image", false, false, Handling::Kept),
    ] {
        let got = handling(&order(data), &with(cloud_init, has_ignition));
        assert_eq!(got, Ok(want), "{data:?} {cloud_init} {has_ignition}");
    }
}

#[test]
fn data_that_nobody_carries_out_is_refused() {
    let image = || "debian-12".to_string();
    for version in ["3.3.0", "2.2.0", "9.0.0"] {
        let config = format!(r#"{{"ignition":{{"version":"{version}"}}}}"#);
        let refused = handling(&order(&config), &with(true, false)).unwrap_err();
        assert_eq!(refused, UserDataError::NoIgnition(image()));
        let text = refused.to_string();
        assert!(
            text.contains("\"debian-12\"") && text.contains("take an image"),
            "{text}"
        );
    }
    for data in [
        "#cloud-config\nruncmd: []\n",
        "\n#cloud-config-archive\n",
        "## template: jinja\n#cloud-config\n",
        "#include\nhttps://example.org\n",
    ] {
        let refused = handling(&order(data), &with(false, true));
        assert_eq!(refused, Err(UserDataError::NoCloudInit(image())), "{data}");
    }
    let cut = handling(&order(r#"{"ignition":{"version":"3.3"#), &with(true, true));
    assert!(matches!(cut, Err(UserDataError::NotJson(_))), "{cut:?}");
}

#[test]
fn remote_sources_are_refused_wherever_they_stand() {
    let at = |config: Value| match handling(&order(&config.to_string()), &with(true, true)) {
        Ok(_) => None,
        Err(UserDataError::Remote(at)) => Some(at),
        Err(other) => panic!("{other}"),
    };
    let file = |source: Value| {
        json!({"ignition": {"version": "3.3.0"},
               "storage": {"files": [{"path": "/a", "contents": {"source": source}}]}})
    };
    assert_eq!(at(file(json!("data:,x"))), None);
    assert_eq!(at(file(json!("DATA:;base64,eA=="))), None);
    assert_eq!(at(file(json!(""))), None);
    assert_eq!(at(file(Value::Null)), None);
    for source in ["http://169.254.1.1/", "tftp://a/b", "s3://a/b", "dat", "ä€"] {
        let want = Some("$.storage.files[0].contents.source".to_string());
        assert_eq!(at(file(json!(source))), want, "{source}");
    }
    let merged = json!({"ignition": {"version": "3.3.0", "config": {"merge": [
        {"source": "data:,{}"}, {"source": "https://example.org/config.ign"}]}}});
    let want = "$.ignition.config.merge[1].source".to_string();
    assert_eq!(at(merged), Some(want));
}

#[test]
fn parts_of_other_stages_are_refused() {
    for (config, want) in [
        (
            json!({"storage": {"disks": [{"device": "/dev/sda"}]}}),
            Some("storage.disks"),
        ),
        (
            json!({"storage": {"filesystems": [{}]}}),
            Some("storage.filesystems"),
        ),
        (json!({"storage": {"luks": [{}]}}), Some("storage.luks")),
        (json!({"storage": {"raid": [{}]}}), Some("storage.raid")),
        (
            json!({"kernelArguments": {"shouldExist": ["quiet"]}}),
            Some("kernelArguments"),
        ),
        (
            json!({"kernelArguments": {}, "storage": {"disks": [], "files": [{}]}}),
            None,
        ),
    ] {
        let want = want.map(UserDataError::Unsupported);
        assert_eq!(check_merged(&config).err(), want, "{config}");
    }
}

#[test]
fn cloud_init_runs_only_with_data_for_it() {
    let seed = format!("{SEED}/user-data");
    let install = order("#cloud-config\n");
    let get = |has_cloud_init, handling, path: &str| {
        let items = items(&install, has_cloud_init, handling);
        items
            .into_iter()
            .find(|i| i.path == path)
            .map(|item| item.state)
    };
    let secret = ItemState::File(Owner::root(0o600), install.userdata.clone());
    for handling in [Handling::Nothing, Handling::Ignition(IGNITION)] {
        let off = get(true, handling, CLOUD_INIT_OFF);
        assert!(matches!(off, Some(ItemState::File(..))), "{handling:?}");
        assert_eq!(get(true, handling, &seed), None);
        assert!(items(&install, false, handling).is_empty());
    }
    assert_eq!(
        get(true, Handling::CloudInit, CLOUD_INIT_OFF),
        Some(ItemState::Absent)
    );
    assert_eq!(get(true, Handling::CloudInit, &seed), Some(secret.clone()));
    assert_eq!(
        get(false, Handling::Kept, "/etc/metal/userdata"),
        Some(secret)
    );
    assert_eq!(get(false, Handling::Kept, &seed), None);
}
