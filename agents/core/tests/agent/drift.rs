//! Changes by hand: noticed, reported, healed or held.

use std::time::{Duration, Instant};

use agents_core::config::{Config, DriftPolicy};
use agents_kit::Agent;
use agents_nos::model::{Mtu, SwitchModel};
use agents_nos::stub::Stub;
use agents_nos::{Membership, Nos};
use proto_mesh::{SwitchDrift, SwitchReport};

use crate::fixture::{
    Control, Counted, Running, Site, config, desired, fresh, heard, segment, until,
};

/// A leaf in segment 27 at generation 1.
struct Leaf {
    control: Control,
    switch: Stub,
    running: Running,
    _server: tokio::task::JoinSet<()>,
}

impl Leaf {
    async fn start(policy: DriftPolicy) -> Self {
        let switch = fresh();
        Self::start_on(policy, switch.clone(), switch).await
    }

    async fn start_on<S: Nos + 'static>(policy: DriftPolicy, stub: Stub, switch: S) -> Self {
        let (site, control) = (Site::new(), Control::default());
        control.desired.send_replace(desired(1, 27));
        let (address, server) = site.serve(&control);
        let agent = Agent::from_credential(site.leaf(), vec![address.to_string()]).unwrap();
        let config = Config {
            drift: policy,
            ..config()
        };
        let running = Running::start(agent, config, switch);
        heard(&control.report, |report| report.applied_generation == 1).await;
        Self {
            control,
            switch: stub,
            running,
            _server: server,
        }
    }

    fn edit(&self, change: impl FnOnce(&mut SwitchModel)) {
        self.switch.drift(|seen| change(&mut seen.model));
    }

    async fn told(&self, want: impl FnMut(&SwitchReport) -> bool) -> SwitchReport {
        heard(&self.control.report, want).await
    }
}

fn swp1_down(model: &mut SwitchModel) {
    model.ports.get_mut("swp1").unwrap().admin_up = false;
}

fn swp1_out(model: &mut SwitchModel) {
    model.ports.get_mut("swp1").unwrap().membership = Membership::Underlay;
}

/// Object, seen and desired state, and whether it is healed.
fn words(drift: &SwitchDrift) -> [&str; 4] {
    let healed = if drift.healed { "healed" } else { "open" };
    [&drift.object, &drift.seen, &drift.desired, healed]
}

#[tokio::test]
async fn a_change_by_hand_is_told_and_healed() {
    let leaf = Leaf::start(DriftPolicy::Heal).await;
    let before = leaf.told(|_| true).await;
    assert_eq!(before.drift, [], "what control orders is no drift");
    leaf.edit(swp1_down);
    let report = leaf
        .told(|report| report.drift.iter().any(|drift| drift.healed))
        .await;
    let [drift] = &report.drift[..] else {
        panic!("{:?}", report.drift);
    };
    let want = [
        "port swp1",
        "in segment 27, down",
        "in segment 27, up",
        "healed",
    ];
    assert_eq!(words(drift), want);
    assert!(drift.noticed_ms > 0);
    assert_eq!((report.error.as_str(), report.problems.len()), ("", 0));
    assert!(leaf.switch.place("swp1").is_some(), "up again");
    leaf.running.stop().await;
}

#[tokio::test]
async fn a_change_by_hand_is_held_until_control_changes_the_object() {
    let leaf = Leaf::start(DriftPolicy::Report).await;
    leaf.edit(swp1_down);
    let report = leaf.told(|report| !report.error.is_empty()).await;
    let held = "was changed by hand and is held: in segment 27, down; desired: in segment 27, up";
    assert_eq!(report.error, format!("port swp1 {held}"));
    let [problem] = &report.problems[..] else {
        panic!("{:?}", report.problems);
    };
    assert_eq!(
        (
            problem.object.as_str(),
            problem.reason.as_str(),
            problem.attempts
        ),
        ("port swp1", held, 0)
    );
    assert_eq!(words(&report.drift[0])[3], "open");

    // Control changes another port: the held one stays as it is.
    let mut other = desired(2, 27);
    other.ports[1].vni = 27;
    leaf.control.desired.send_replace(other.clone());
    until(&leaf.switch, "swp2", segment(27)).await;
    let report = leaf.told(|report| report.ports[1].vni == 27).await;
    assert_eq!(report.applied_generation, 1, "not in all parts");
    assert_eq!(leaf.switch.place("swp1"), None, "still down");

    // Control moves the held port.
    other.generation = 3;
    other.ports[0].vni = 4000;
    leaf.control.desired.send_replace(other);
    let report = leaf.told(|report| report.applied_generation == 3).await;
    assert_eq!((report.error.as_str(), report.problems.len()), ("", 0));
    assert_eq!(leaf.switch.place("swp1"), Some(segment(4000)));
    leaf.running.stop().await;
}

#[tokio::test]
async fn a_held_change_ends_when_it_is_taken_back() {
    let leaf = Leaf::start(DriftPolicy::Report).await;
    leaf.edit(swp1_down);
    leaf.told(|report| !report.error.is_empty()).await;
    leaf.edit(|model| model.ports.get_mut("swp1").unwrap().admin_up = true);
    let report = leaf.told(|report| report.error.is_empty()).await;
    assert_eq!(words(&report.drift[0])[3], "healed");
    leaf.running.stop().await;
}

#[tokio::test]
async fn what_lets_tenants_meet_is_healed_whatever_the_policy() {
    let leaf = Leaf::start(DriftPolicy::Report).await;
    leaf.edit(|model| {
        swp1_out(model);
        model.ports.get_mut("swp2").unwrap().mtu = Some(Mtu::ETHERNET);
    });
    let report = leaf
        .told(|report| report.drift.iter().any(|drift| drift.healed))
        .await;
    let [drift] = &report.drift[..] else {
        panic!("{:?}", report.drift);
    };
    assert_eq!(
        words(drift),
        [
            "port swp1",
            "without a place, up",
            "in segment 27, up",
            "healed"
        ],
        "an MTU that nobody desires is no drift"
    );
    until(&leaf.switch, "swp1", segment(27)).await;
    leaf.running.stop().await;
}

#[tokio::test]
async fn a_change_without_an_event_is_found_within_five_seconds() {
    let stub = fresh();
    let leaf = Leaf::start_on(DriftPolicy::Heal, stub.clone(), Counted::silent(stub)).await;
    leaf.edit(swp1_out);
    let edited = Instant::now();
    until(&leaf.switch, "swp1", segment(27)).await;
    assert!(
        edited.elapsed() < Duration::from_secs(5),
        "{:?}",
        edited.elapsed()
    );
    leaf.running.stop().await;
}
