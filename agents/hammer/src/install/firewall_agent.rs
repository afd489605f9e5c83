//! The agent of a firewall's rules in the installed system. Only an order of a firewall brings it.
//!
//! Nothing is forwarded before the agent's rules are in the kernel: a unit closes forwarding at
//! boot, whatever the image sets, and the agent opens it. Addresses and routes come after both.

use std::path::{Component, Path};

use anyhow::{Context, Result, ensure};
use proto_mesh::{Install, UserdataContent};

use super::config::{STATE_DIR, UNITS, WANTS};
use super::item::{ItemState, SystemItem, file, item, link};
use super::rootfs::Owner;

/// Path of the agent, in hammer's initramfs and in the installed system.
pub const PROGRAM: &str = "/usr/lib/metalmesh/metalmesh-firewall";
/// Public keys of releases in hammer's initramfs: those who build it bring the agent, and say who may
/// replace it. May be missing.
const RELEASE_KEYS_SOURCE: &str = "/usr/lib/metalmesh/release-keys";
/// The same file in the installed system, beside the agent's configuration.
pub(super) const RELEASE_KEYS: &str = "/etc/firewall-controller/release-keys";
/// Directory of the agent's configuration. Control's files must be in it.
const CONFIG_DIR: &str = "/etc/firewall-controller";
/// File of the agent's configuration. Without it the agent never has rules.
const CONFIG: &str = "/etc/firewall-controller/config.yaml";
/// Directory of the last good rules, sealed by the agent, under that of the identity.
const LAST_GOOD_DIR: &str = "/var/lib/metalmesh/firewall";
/// Directory of the rules as text, which the agent writes for others.
const RULES_DIR: &str = "/etc/nftables";
/// Settings that close forwarding. Not in /etc/sysctl.d: what applies that again, on a firewall that
/// runs, would stop its traffic.
const CLOSED: &str = "/usr/lib/metalmesh/closed.conf";
/// Unit that closes forwarding.
const CLOSED_UNIT: &str = "metalmesh-closed.service";
/// Unit of the agent.
const AGENT_UNIT: &str = "metalmesh-firewall.service";

/// A reason why an order of a firewall cannot be carried out. None of them is retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FirewallAgentError {
    /// A file of the order that is not the agent's.
    #[error("the order has a file {0:?} for the firewall: it must be in {CONFIG_DIR}")]
    Path(String),
    /// Keys of releases in the order.
    #[error(
        "the order has a file {RELEASE_KEYS:?}: keys of releases come with hammer's initramfs or the \
         image, and not from control"
    )]
    ReleaseKeys,
    /// An order without a configuration of the agent.
    #[error("the order of the firewall has no file {CONFIG}: update control")]
    NoConfig,
}

/// Refuses an order of a firewall that cannot be carried out, before a disk is touched.
///
/// # Errors
/// When hammer's initramfs does not have the agent, or the order not its files.
pub(super) fn check(install: &Install) -> Result<()> {
    ensure!(
        !install.firewall || Path::new(PROGRAM).is_file(),
        "the order is that of a firewall, and this initramfs has no {PROGRAM}: build it with \
         `cargo xtask initramfs`"
    );
    items(install)?;
    Ok(())
}

/// The program of the agent, if the order is that of a firewall.
///
/// # Errors
/// When it cannot be read.
pub(super) fn program(install: &Install) -> Result<Option<Vec<u8>>> {
    if !install.firewall {
        return Ok(None);
    }
    let program = std::fs::read(PROGRAM).with_context(|| format!("cannot read {PROGRAM}"))?;
    Ok(Some(program))
}

/// The keys of releases that the agent is to trust, if the order is that of a firewall. `None` if
/// hammer's initramfs has none: those of the image stay.
///
/// # Errors
/// When they cannot be read.
pub(super) fn release_keys(install: &Install) -> Result<Option<Vec<u8>>> {
    if !install.firewall {
        return Ok(None);
    }
    match std::fs::read(RELEASE_KEYS_SOURCE) {
        Ok(keys) => Ok(Some(keys)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {RELEASE_KEYS_SOURCE}")),
    }
}

/// The files of the agent. None for other machines.
///
/// # Errors
/// When the order has no configuration, or a file outside of the agent's directory.
pub(super) fn items(install: &Install) -> Result<Vec<SystemItem>, FirewallAgentError> {
    if !install.firewall {
        return Ok(Vec::new());
    }
    let mut out = vec![
        item(CONFIG_DIR, ItemState::Dir(Owner::root(0o700))),
        item(LAST_GOOD_DIR, ItemState::Dir(Owner::root(0o700))),
        item(RULES_DIR, ItemState::Dir(Owner::root(0o755))),
    ];
    for content in &install.userdata_contents {
        out.push(config_file(content)?);
    }
    if !out.iter().any(|item| item.path == CONFIG) {
        return Err(FirewallAgentError::NoConfig);
    }
    out.push(file(
        CLOSED,
        0o644,
        // With `-` a kernel without IPv6 is no failure.
        "net.ipv4.ip_forward=0\n-net.ipv6.conf.all.forwarding=0\n",
    ));
    out.extend(unit(CLOSED_UNIT, &closed_unit()));
    out.extend(unit(AGENT_UNIT, &agent_unit()));
    // FRR waits for the agent, or for its failure. Until the agent says otherwise, the routes keep the
    // longest distance, so that they lead here only once its rules are in force.
    out.push(file(
        &format!("{UNITS}/frr.service.d/metalmesh-firewall.conf"),
        0o644,
        format!("[Unit]\nAfter={AGENT_UNIT}\n"),
    ));
    Ok(out)
}

fn config_file(content: &UserdataContent) -> Result<SystemItem, FirewallAgentError> {
    let path = Path::new(&content.path);
    let name = path.strip_prefix(CONFIG_DIR);
    let is_name = name.is_ok_and(|name| {
        let mut parts = name.components();
        matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        )
    });
    if !is_name {
        return Err(FirewallAgentError::Path(content.path.clone()));
    }
    if content.path == RELEASE_KEYS {
        return Err(FirewallAgentError::ReleaseKeys);
    }
    let state = ItemState::File(Owner::root(0o600), content.content.clone());
    Ok(item(&content.path, state))
}

/// A unit with the link that enables it.
fn unit(name: &str, text: &str) -> [SystemItem; 2] {
    let path = format!("{UNITS}/{name}");
    [
        file(&path, 0o644, text),
        link(&format!("{WANTS}/{name}"), &path),
    ]
}

/// Once per boot, after the image's own settings. `network-pre.target` is before any network is
/// configured; `DefaultDependencies=no` since that may be early, as for cloud-init.
fn closed_unit() -> String {
    format!(
        "[Unit]\nDescription=Forwards nothing until the rules of this firewall are in force\n\
         DefaultDependencies=no\nAfter=local-fs.target systemd-sysctl.service\n\
         Before=network-pre.target {AGENT_UNIT} shutdown.target\nWants=network-pre.target\n\
         Conflicts=shutdown.target\n\n\
         [Service]\nType=oneshot\nExecStart=/lib/systemd/systemd-sysctl {CLOSED}\n\
         RemainAfterExit=yes\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    )
}

/// `Type=notify`: it is ready when its rules are in the kernel, and only then the network comes. If
/// it fails, the network comes too, so that the machine can be repaired, and stays closed.
/// After `nftables.service`, whose rules of the image may begin with `flush ruleset`.
///
/// The program here is never replaced: at its start it becomes the release that self-update has put
/// into its directory, and it ends with 75 for that. The watchdog ends one that hangs.
fn agent_unit() -> String {
    format!(
        "[Unit]\nDescription=Rules of this firewall\nDefaultDependencies=no\n\
         RequiresMountsFor={LAST_GOOD_DIR} {RULES_DIR}\n\
         After=local-fs.target nftables.service {CLOSED_UNIT}\n\
         Before=network-pre.target shutdown.target\nWants=network-pre.target {CLOSED_UNIT}\n\
         Conflicts=shutdown.target\nStartLimitIntervalSec=0\n\n\
         [Service]\nType=notify\nNotifyAccess=main\nTimeoutStartSec=30\n\
         ExecStart={PROGRAM} run --config {CONFIG} --state-dir {LAST_GOOD_DIR}\n\
         Restart=always\nRestartSec=5\nSuccessExitStatus=75\nWatchdogSec=120\n\
         ProtectSystem=strict\n\
         ReadWritePaths={STATE_DIR} {RULES_DIR}\nProtectHome=yes\nNoNewPrivileges=yes\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(path: &str) -> Install {
        Install {
            firewall: true,
            userdata_contents: vec![UserdataContent {
                path: path.into(),
                content: b"name: fw-1\n".to_vec(),
            }],
            ..Install::default()
        }
    }

    fn state<'a>(items: &'a [SystemItem], path: &str) -> &'a ItemState {
        let found = items.iter().find(|item| item.path == path);
        &found.unwrap_or_else(|| panic!("no {path}")).state
    }

    fn text(items: &[SystemItem], path: &str) -> String {
        match state(items, path) {
            ItemState::File(_, bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn only_a_firewall_gets_the_agent() {
        let mut other = order("/etc/firewall-controller/config.yaml");
        other.firewall = false;
        assert_eq!(items(&other), Ok(Vec::new()));
        assert!(program(&other).unwrap().is_none());
        check(&other).unwrap();
        // Also on a host that has the program.
        assert!(check(&order("/etc/passwd")).is_err());
    }

    #[test]
    fn a_firewall_gets_its_configuration_and_a_place_for_the_last_good_rules() {
        let items = items(&order("/etc/firewall-controller/config.yaml")).unwrap();
        let secret = ItemState::File(Owner::root(0o600), b"name: fw-1\n".to_vec());
        assert_eq!(
            *state(&items, "/etc/firewall-controller/config.yaml"),
            secret
        );
        for (path, mode) in [
            ("/etc/firewall-controller", 0o700),
            ("/var/lib/metalmesh/firewall", 0o700),
            ("/etc/nftables", 0o755),
        ] {
            assert_eq!(*state(&items, path), ItemState::Dir(Owner::root(mode)));
        }
        assert!(LAST_GOOD_DIR.starts_with(STATE_DIR));
    }

    #[test]
    fn forwarding_is_closed_until_the_agent_is_ready() {
        let items = items(&order("/etc/firewall-controller/config.yaml")).unwrap();
        for unit in ["metalmesh-closed.service", "metalmesh-firewall.service"] {
            let path = format!("/etc/systemd/system/{unit}");
            let wanted = format!("/etc/systemd/system/multi-user.target.wants/{unit}");
            assert_eq!(*state(&items, &wanted), ItemState::Link(path.clone()));
            let text = text(&items, &path);
            assert!(text.contains("Before=network-pre.target"), "{text}");
            assert!(text.contains("Wants=network-pre.target"), "{text}");
        }
        let closed = text(&items, "/usr/lib/metalmesh/closed.conf");
        assert!(closed.lines().all(|line| line.ends_with("=0")), "{closed}");
        let agent = text(&items, "/etc/systemd/system/metalmesh-firewall.service");
        for line in [
            "Wants=network-pre.target metalmesh-closed.service\n",
            "After=local-fs.target nftables.service metalmesh-closed.service\n",
            "Type=notify\n",
            "Restart=always\n",
            "SuccessExitStatus=75\n",
            "WatchdogSec=120\n",
        ] {
            assert!(agent.contains(line), "{line}{agent}");
        }
        let routes = "/etc/systemd/system/frr.service.d/metalmesh-firewall.conf";
        assert_eq!(
            text(&items, routes),
            "[Unit]\nAfter=metalmesh-firewall.service\n"
        );
    }

    #[test]
    fn files_outside_of_the_agents_directory_are_refused() {
        for path in [
            "/etc/passwd",
            "/etc/firewall-controller",
            "/etc/firewall-controller/../passwd",
            "/etc/firewall-controller/a/b",
            "etc/firewall-controller/config.yaml",
            "",
        ] {
            let refused = FirewallAgentError::Path(path.to_owned());
            assert_eq!(items(&order(path)), Err(refused));
        }
    }

    /// Control alone cannot choose who signs the programs that a firewall runs.
    #[test]
    fn keys_of_releases_do_not_come_from_control() {
        let order = order(RELEASE_KEYS);
        assert_eq!(items(&order), Err(FirewallAgentError::ReleaseKeys));
    }

    #[test]
    fn an_order_without_the_agents_configuration_is_refused() {
        let empty = Install {
            firewall: true,
            ..Install::default()
        };
        for order in [empty, order("/etc/firewall-controller/other.yaml")] {
            assert_eq!(items(&order), Err(FirewallAgentError::NoConfig));
        }
    }
}
