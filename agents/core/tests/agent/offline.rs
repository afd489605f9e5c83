//! The agent without control.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use agents_kit::{Agent, StateDir};
use agents_nos::stub::Stub;
use agents_nos::{Membership, Step};
use prost::Message as _;
use proto_link::now_ms;
use proto_mesh::{SwitchDesired, sealed};

use crate::fixture::{
    Control, Counted, PATIENCE, Running, Site, config, desired, fresh, joined, segment, until,
};

#[tokio::test]
async fn a_rebooted_switch_forwards_without_control() {
    let (site, control) = (Site::new(), Control::default());
    control.desired.send_replace(desired(3, 27));
    let (address, server) = site.serve(&control);
    let home = tempfile::tempdir().unwrap();
    let dir = joined(&home, &site, address);

    let before = fresh();
    let running = Running::start(
        Agent::resume(dir.clone(), Vec::new()).unwrap(),
        config(),
        before.clone(),
    );
    until(&before, "swp1", segment(27)).await;
    running.stop().await;
    drop(server);

    let rebooted = fresh();
    let running = Running::start(
        Agent::resume(dir, Vec::new()).unwrap(),
        config(),
        rebooted.clone(),
    );
    until(&rebooted, "swp1", segment(27)).await;
    running.stop().await;
}

/// An address that nobody serves.
fn nowhere() -> SocketAddr {
    ([127, 0, 0, 1], 9).into()
}

/// A leaf without control, with a last-good state of this content.
pub(crate) struct Alone {
    dir: StateDir,
    _home: tempfile::TempDir,
}

impl Alone {
    pub(crate) fn new(site: &Site, kept: &[u8]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let dir = joined(&home, site, nowhere());
        let alone = Self { dir, _home: home };
        fs::write(alone.file(), kept).unwrap();
        alone
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("switch.last-good")
    }

    fn start(&self, switch: &Stub) -> Running {
        Running::start(self.agent(), config(), switch.clone())
    }

    pub(crate) fn agent(&self) -> Agent {
        Agent::resume(self.dir.clone(), Vec::new()).unwrap()
    }
}

/// The file of a state that a control node signed for an agent.
pub(crate) fn kept(site: &Site, agent: &str, state: SwitchDesired) -> Vec<u8> {
    let node = site.node();
    let sealed = sealed::seal(&node, &agent.parse().unwrap(), state, now_ms()).unwrap();
    [b"mmgood\0\x02", &sealed.encode_to_vec()[..]].concat()
}

pub(crate) const LEAF1: &str = "spiffe://mesh.test/partition/p1/core/leaf1";
pub(crate) const LEAF2: &str = "spiffe://mesh.test/partition/p1/core/leaf2";

#[tokio::test]
async fn a_last_good_state_configures_the_switch_without_control() {
    let (site, switch) = (Site::new(), fresh());
    let alone = Alone::new(&site, &kept(&site, LEAF1, desired(7, 27)));
    let running = alone.start(&switch);
    until(&switch, "swp1", segment(27)).await;
    running.stop().await;
}

#[tokio::test]
async fn a_state_that_control_did_not_sign_for_this_switch_changes_nothing() {
    let site = Site::new();
    let good = kept(&site, LEAF1, desired(7, 27));
    let mut flipped = good.clone();
    let port = flipped.windows(4).position(|bytes| bytes == b"swp1");
    flipped[port.unwrap() + 3] = b'2';
    let files = [
        ("empty", Vec::new()),
        ("cut", good[..good.len() - 1].to_vec()),
        ("changed", flipped),
        ("not ours", b"# nothing of ours".to_vec()),
        ("another switch's", kept(&site, LEAF2, desired(7, 27))),
        ("another site's", kept(&Site::new(), LEAF1, desired(7, 27))),
        (
            "unsigned",
            [b"mmgood\0\x02", &desired(7, 27).encode_to_vec()[..]].concat(),
        ),
    ];
    for (kind, file) in files {
        let switch = fresh();
        let alone = Alone::new(&site, &file);
        let counted = Counted::new(switch.clone());
        let observations = counted.observations();
        let running = Running::start(alone.agent(), config(), counted);
        // Each change by hand leads to a pass.
        let look = async {
            while observations.load(Ordering::Relaxed) < 5 {
                switch.drift(|seen| {
                    let port = seen.model.ports.get_mut("swp1").unwrap();
                    port.membership = Membership::Underlay;
                });
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap();
        assert_eq!(switch.applied(), Vec::<Step>::new(), "{kind}");
        assert_eq!(fs::read(alone.file()).unwrap(), file, "{kind}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_state_directory_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = Site::new();
    let alone = Alone::new(&site, &kept(&site, LEAF1, desired(7, 27)));
    fs::set_permissions(alone.dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = StateDir::open(alone.dir.path()).unwrap_err();
    assert!(
        refused.to_string().contains("may be read by others"),
        "{refused}"
    );
}
