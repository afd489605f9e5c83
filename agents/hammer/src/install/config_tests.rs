use super::*;

const ALL: ImageFeatures = ImageFeatures {
    cloud_init: true,
    networkd: true,
    resolved: true,
    timesyncd: true,
    chrony: None,
    sudo: true,
    netplan: false,
    network_manager: false,
    ifupdown: false,
    frr: false,
    ignition: None,
};

fn install() -> Install {
    Install {
        allocation_uuid: "a-1".into(),
        hostname: "web-1".into(),
        ssh_public_keys: vec!["ssh-ed25519 AAAA me\n".into(), "ssh-rsa BBBB you".into()],
        ntp_servers: vec!["10.0.0.1".into()],
        ..Install::default()
    }
}

fn fs(device: &str, path: &str, format: &str, uuid: &str) -> Fs {
    Fs {
        device: device.into(),
        path: path.into(),
        format: format.into(),
        uuid: uuid.into(),
        mount_options: vec![],
    }
}

fn run(install: &Install, features: ImageFeatures) -> Result<Vec<SystemItem>, ConfigError> {
    let accounts = accounts_with_user(Accounts::default(), "$6$", true);
    let names = ["ssh_host_rsa_key".to_string(), "sshd_config".to_string()];
    items(&ConfigInput {
        install,
        mac: "52:54:00:00:00:01",
        nics: &[],
        netplan_names: &[],
        filesystems: &[],
        features,
        handling: Handling::Nothing,
        accounts: &accounts,
        ssh_names: &names,
    })
}

fn get<'a>(items: &'a [SystemItem], path: &str) -> Option<&'a ItemState> {
    items.iter().find(|i| i.path == path).map(|i| &i.state)
}

#[test]
fn keys_belong_to_the_user_and_no_host_key_comes_along() {
    let items = run(&install(), ALL).unwrap();
    let want = ItemState::File(
        Owner {
            mode: 0o600,
            uid: 1000,
            gid: 1000,
        },
        b"ssh-ed25519 AAAA me\nssh-rsa BBBB you\n".to_vec(),
    );
    assert_eq!(get(&items, "/home/metal/.ssh/authorized_keys"), Some(&want));
    assert_eq!(
        get(&items, "/etc/ssh/ssh_host_rsa_key"),
        Some(&ItemState::Absent)
    );
    assert_eq!(get(&items, "/etc/ssh/sshd_config"), None);
    assert_eq!(
        get(&items, "/etc/machine-id"),
        Some(&ItemState::File(Owner::root(0o444), vec![]))
    );
    assert_eq!(
        get(&items, "/var/lib/metalmesh"),
        Some(&ItemState::Dir(Owner::root(0o700)))
    );
}

#[test]
fn time_servers_by_what_the_image_has() {
    let order = Install {
        ntp_servers: vec!["10.0.0.1".into(), "ntp.example".into()],
        ..install()
    };
    let timesyncd = "/etc/systemd/timesyncd.conf.d/metalmesh.conf";
    let text = |features, path| match get(&run(&order, features).unwrap(), path) {
        Some(ItemState::File(_, text)) => Some(String::from_utf8(text.clone()).unwrap()),
        _ => None,
    };
    assert_eq!(
        text(ALL, timesyncd).as_deref(),
        Some("[Time]\nNTP=10.0.0.1 ntp.example\nFallbackNTP=\n")
    );
    let chrony = "/etc/chrony/chrony.conf";
    let both = ImageFeatures {
        chrony: Some(chrony),
        ..ALL
    };
    assert_eq!(text(both, timesyncd), None);
    let lines = text(both, chrony).unwrap();
    assert!(
        lines.starts_with("server 10.0.0.1 iburst\nserver ntp.example iburst\n"),
        "{lines}"
    );
    for bad in ["", "a b", "a\ncmdallow all", "-x"] {
        let order = Install {
            ntp_servers: vec![bad.into()],
            ..install()
        };
        assert_eq!(
            run(&order, both),
            Err(ConfigError::TimeServer(bad.into())),
            "{bad:?}"
        );
    }
}

#[test]
fn what_cannot_be_configured_is_refused() {
    let none = ImageFeatures {
        networkd: false,
        ..ALL
    };
    assert_eq!(run(&install(), none), Err(ConfigError::NoNetworkd));
    for bad in ["", "-a", "a b", "a\nb", "a..b", &"x".repeat(64)] {
        let order = Install {
            hostname: bad.into(),
            ..install()
        };
        assert_eq!(
            run(&order, ALL),
            Err(ConfigError::Hostname(bad.into())),
            "{bad}"
        );
    }
}

#[test]
fn fstab_by_uuid() {
    let list = [
        fs("/dev/vda3", "/", "ext4", "u-1"),
        fs("/dev/vda2", "/boot/efi", "vfat", "ABCD-0001"),
        fs("tmpfs", "/tmp", "tmpfs", ""),
        fs("/dev/vda5", "/raw", "none", ""),
        fs("/dev/vda6", "", "ext3", "u-3"),
        fs("/dev/vda4", "", "swap", "u-2"),
    ];
    assert_eq!(
        fstab(&list),
        "UUID=u-1 / ext4 defaults 0 1\nUUID=ABCD-0001 /boot/efi vfat umask=0077 0 0\n\
             tmpfs /tmp tmpfs defaults 0 0\nUUID=u-2 none swap defaults 0 0\n"
    );
}
