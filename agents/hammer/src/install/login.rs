//! Items that a log-in to the new system needs: the account, its SSH keys and the host keys.

use super::config::{ConfigInput, UNITS, WANTS};
use super::item::{ItemState, SystemItem, file, item, link};
use super::rootfs::Owner;
use super::users::{HOME, USER};

/// The account files with the administrative user, its home directory and its SSH keys.
pub(super) fn accounts(input: &ConfigInput<'_>) -> Vec<SystemItem> {
    let a = input.accounts;
    let own = |mode| Owner {
        mode,
        uid: a.uid,
        gid: a.gid,
    };
    let mut keys = String::new();
    for key in &input.install.ssh_public_keys {
        keys.push_str(key.trim());
        keys.push('\n');
    }
    let mut out = vec![
        file("/etc/passwd", 0o644, a.passwd.clone()),
        file("/etc/group", 0o644, a.group.clone()),
        file("/etc/shadow", 0o600, a.shadow.clone()),
        item(HOME, ItemState::Dir(own(0o750))),
        item(&format!("{HOME}/.ssh"), ItemState::Dir(own(0o700))),
        item(
            &format!("{HOME}/.ssh/authorized_keys"),
            ItemState::File(own(0o600), keys.into_bytes()),
        ),
    ];
    if !a.gshadow.is_empty() {
        out.push(file("/etc/gshadow", 0o600, a.gshadow.clone()));
    }
    // Without a password: users log in by SSH key, and the password is for the console only.
    if input.features.sudo {
        out.push(file(
            "/etc/sudoers.d/metalmesh",
            0o440,
            format!("{USER} ALL=(ALL) NOPASSWD: ALL\n"),
        ));
    }
    out
}

/// Removes the image's SSH host keys and adds a unit that generates new ones at the first boot:
/// with shared keys each tenant of an image could impersonate the machines of the others.
pub(super) fn host_keys(ssh_names: &[String]) -> Vec<SystemItem> {
    let old = ssh_names.iter().filter(|n| n.starts_with("ssh_host_"));
    let mut out: Vec<SystemItem> = old
        .map(|n| item(&format!("/etc/ssh/{n}"), ItemState::Absent))
        .collect();
    let make = |kind: &str| {
        format!(
            "ExecStart=/usr/bin/ssh-keygen -q -t {kind} -N \"\" -f /etc/ssh/ssh_host_{kind}_key\n"
        )
    };
    let text = format!(
        "[Unit]\nDescription=SSH host keys of this machine\nBefore=ssh.service sshd.service\n\
         ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key\nConditionPathExists=/usr/bin/ssh-keygen\n\n\
         [Service]\nType=oneshot\n{}{}RemainAfterExit=yes\n",
        make("ed25519"),
        make("ecdsa"),
    );
    out.push(file(
        &format!("{UNITS}/metalmesh-hostkeys.service"),
        0o644,
        text,
    ));
    out.push(link(
        &format!("{WANTS}/metalmesh-hostkeys.service"),
        &format!("{UNITS}/metalmesh-hostkeys.service"),
    ));
    out
}
