//! The machine with every kind of array, volume and file system, and with user data for Ignition:
//! what must be so when it has booted.

use crate::ssh::Key;

/// In the user data; must not come to the log.
const SECRETS: [&str; 2] = ["the-apps-token", "$6$metalmesh$"];
const HASH: &str = "$6$metalmesh$z5lFxiD8p6xI1BhcEyCCzKWcFkYd2yhVf3AQF2nZ1Y9hVnX0yXQ5J8cP3mQeZlYF0l3b1c5\
                    gq1cQxJ2rT7uVw/";

pub(crate) fn is_secret_in(text: &str) -> bool {
    SECRETS.iter().any(|secret| text.contains(secret))
}

/// A file with owner and mode, a unit that is enabled, one that is disabled, and a user who gets
/// in with the key.
pub(crate) fn user_data(key: &Key) -> Vec<u8> {
    let unit = "[Service]\nType=oneshot\nRemainAfterExit=yes\nUser=core\nExecStart=/bin/cat /etc/app/token\n\
                [Install]\nWantedBy=multi-user.target\n";
    let config = serde_json::json!({
        "ignition": {"version": "3.3.0"},
        "passwd": {"users": [{
            "name": "core",
            "passwordHash": HASH,
            "groups": ["sudo"],
            "sshAuthorizedKeys": [key.public.trim()],
        }]},
        "storage": {
            "files": [{
                "path": "/etc/app/token",
                "mode": 0o640,
                "user": {"name": "core"},
                "group": {"name": "adm"},
                "contents": {"source": format!("data:,{}", SECRETS[0])},
            }],
            "links": [{"path": "/etc/app/link", "target": "token"}],
        },
        "systemd": {"units": [
            {"name": "app.service", "enabled": true, "contents": unit},
            {"name": "e2scrub_all.timer", "enabled": true},
            {"name": "fstrim.timer", "enabled": false},
        ]},
    });
    config.to_string().into_bytes()
}

/// A command's output in words, one line for each line.
async fn lines(key: &Key, port: u16, command: &str) -> Vec<String> {
    let said = key.run(port, command).await;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    said.lines().map(words).collect()
}

pub(crate) async fn check_disks(key: &Key, port: u16) {
    let root = array(key, port, "/").await;
    for want in [
        "Raid Level : raid1",
        "Active Devices : 2",
        "Spare Devices : 1",
    ] {
        assert!(root.contains(&want.to_string()), "{want}: {root:#?}");
    }
    let scratch = array(key, port, "/scratch").await;
    for want in [
        "Raid Level : raid0",
        "Active Devices : 3",
        "Chunk Size : 64K",
    ] {
        assert!(scratch.contains(&want.to_string()), "{want}: {scratch:#?}");
    }
    let mdstat = key.run(port, "cat /proc/mdstat").await;
    assert!(
        mdstat.contains("(S)") && mdstat.contains("[2/2]"),
        "{mdstat}"
    );
    println!("{mdstat}");
    check_volumes(key, port).await;
    check_mounts(key, port).await;
}

/// The array under a mount point, as mdadm tells it.
async fn array(key: &Key, port: u16, path: &str) -> Vec<String> {
    let command = format!("sudo mdadm --detail $(findmnt -no SOURCE {path})");
    lines(key, port, &command).await
}

async fn check_volumes(key: &Key, port: u16) {
    let command = "sudo lvs --noheadings -O lv_name -o lv_name,segtype,stripes,lv_size \
                   --units m --nosuffix vg0";
    let volumes = lines(key, port, command).await;
    println!("{}", volumes.join("\n"));
    // 300 MiB in three stripes, 100 MiB twice: whole extents of 4 MiB.
    assert!(
        volumes.contains(&"fast striped 3 300.00".into()),
        "{volumes:?}"
    );
    assert!(
        volumes.contains(&"copied raid1 2 100.00".into()),
        "{volumes:?}"
    );
    assert!(
        volumes.iter().any(|v| v.starts_with("swap linear 1 ")),
        "{volumes:?}"
    );
    let group = lines(key, port, "sudo vgs --noheadings -o pv_count,vg_tags vg0").await;
    assert_eq!(group, ["3 data"]);
}

async fn check_mounts(key: &Key, port: u16) {
    let command = "for path in / /scratch /srv/fast /srv/copied /mem; do \
                   findmnt -rno TARGET,FSTYPE,OPTIONS $path; done; \
                   for path in / /scratch; do \
                   sudo blkid -o value -s LABEL $(findmnt -no SOURCE $path); done; \
                   sudo swapon --show=TYPE,LABEL --noheadings; \
                   sudo tune2fs -l $(findmnt -no SOURCE /scratch) | grep 'Inode size'";
    let mounts = lines(key, port, command).await;
    println!("{}", mounts.join("\n"));
    let has = |start: &str, options: &[&str]| {
        mounts.iter().any(|line| {
            line.starts_with(start) && options.iter().all(|option| line.contains(option))
        })
    };
    assert!(has("/ ext4 ", &[]) && has("root", &[]), "{mounts:#?}");
    assert!(
        has("scratch", &[]) && has("/scratch ext3 ", &["noatime", "commit=17"]),
        "{mounts:#?}"
    );
    assert!(
        has("/srv/fast ext4 ", &[]) && has("/srv/copied ext4 ", &[]),
        "{mounts:#?}"
    );
    assert!(
        has("/mem tmpfs ", &["size=65536k", "mode=700", "nosuid"]),
        "{mounts:#?}"
    );
    assert!(has("partition pages", &[]), "{mounts:#?}");
    // 256 without the option.
    assert!(has("Inode size: 128", &[]), "{mounts:#?}");
}

pub(crate) async fn check_user_data(key: &Key, port: u16) {
    let command = "systemctl is-system-running --wait; \
                   sudo stat -c '%a %U %G %s' /etc/app/token; readlink /etc/app/link; \
                   systemctl is-active app.service; \
                   systemctl is-enabled app.service e2scrub_all.timer fstrim.timer; \
                   sudo grep -c '^core:[$]6[$]metalmesh' /etc/shadow; \
                   test -e /run/cloud-init/disabled && echo off; \
                   sudo find / -xdev -name config.ign -o -xdev -name merged.json; \
                   ls /etc/metal 2>/dev/null";
    let said = lines(key, port, command).await;
    println!("{}", said.join("\n"));
    let want = [
        "running",
        &format!("640 core adm {}", SECRETS[0].len()),
        "token",
        "active",
        "enabled",
        "enabled",
        "disabled",
        "1",
        "off",
    ];
    assert_eq!(said, want);
    let groups = key.run_as("core", port, "id -nG").await;
    assert_eq!(groups.trim(), "core sudo");
}
