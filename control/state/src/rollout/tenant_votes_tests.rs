//! Firewalls of several tenants: none alone stops a rollout, and none alone lets it go on.

use super::decision_tests::{HEALTHY_MS, PATIENCE_MS, Site, agent, refused};
use super::entity::{RolloutState, WaveSize};
use super::judged::AgentStanding;

/// A site whose firewalls are of these tenants, in the order in which they are told.
fn site(tenants: &[&str], first_wave: u32, failures_max: u32) -> Site {
    waves(tenants, &[WaveSize::Agents(first_wave)], failures_max)
}

/// The site of [`site`] with further waves.
fn waves(tenants: &[&str], waves: &[WaveSize], failures_max: u32) -> Site {
    let agents = u128::try_from(tenants.len()).unwrap();
    let mut site = Site::new(agents, waves, failures_max);
    for (judged, tenant) in site.agents.iter_mut().zip(tenants) {
        judged.tenant = Some(tenant.parse().unwrap());
    }
    site
}

/// Steps until nothing changes.
fn step(site: &mut Site, ms: u64) {
    site.later(ms);
    loop {
        let before = site.rollout.clone();
        if *site.later(0) == before {
            return;
        }
    }
}

#[test]
fn one_tenant_alone_does_not_stop_a_rollout() {
    let mut site = site(&["ada", "ada", "bob", "eve"], 2, 0);
    step(&mut site, 0);
    assert_eq!(site.reach(), (1, 2));
    site.stand(1, refused());
    site.stand(2, refused());
    step(&mut site, 0);
    // Its firewalls failed, and others are asked, one after the other.
    assert_eq!(site.rollout.state, RolloutState::Running);
    assert_eq!(site.reach(), (1, 3));
    site.stand(3, AgentStanding::Settled);
    step(&mut site, HEALTHY_MS);
    assert_eq!(site.reach(), (1, 4), "one tenant is not proof enough");
    site.stand(4, AgentStanding::Settled);
    step(&mut site, 0);
    step(&mut site, HEALTHY_MS);
    assert_eq!(site.rollout.state, RolloutState::Done);
    assert_eq!(site.rollout.failed.len(), 2, "they are shown");
}

#[test]
fn the_other_firewalls_of_a_tenant_whose_firewalls_fail_come_last() {
    let sizes = [WaveSize::Agents(1), WaveSize::Agents(4)];
    let mut site = waves(&["ada", "ada", "bob", "eve", "bob"], &sizes, 0);
    step(&mut site, 0);
    site.stand(1, refused());
    step(&mut site, 0);
    site.stand(3, AgentStanding::Settled);
    step(&mut site, 0);
    site.stand(4, AgentStanding::Settled);
    step(&mut site, 0);
    assert_eq!(site.reach(), (1, 3));
    step(&mut site, HEALTHY_MS);
    assert_eq!(site.reach(), (2, 4));
    let told = &site.rollout.told;
    assert!(told.contains(&agent(5)) && !told.contains(&agent(2)));
}

#[test]
fn one_tenant_alone_does_not_let_a_rollout_go_on() {
    let mut site = site(&["ada", "ada", "bob", "bob"], 1, 0);
    step(&mut site, 0);
    assert_eq!(site.reach(), (1, 1));
    site.settle();
    step(&mut site, 0);
    // The second tenant's firewall is told in the same wave, and has all of its time.
    assert!(site.rollout.told.contains(&agent(3)));
    assert_eq!(site.reach(), (1, 2));
    step(&mut site, PATIENCE_MS - 1);
    assert_eq!(site.reach(), (1, 2), "it has not settled");
    site.settle();
    step(&mut site, 0);
    assert_eq!(site.reach(), (1, 2), "not for long enough");
    step(&mut site, HEALTHY_MS);
    assert_eq!(site.reach(), (2, 4));
}

#[test]
fn failures_of_two_tenants_stop_a_rollout() {
    for (failures_max, stops) in [(0, true), (1, true), (2, false)] {
        let mut site = site(&["ada", "bob", "eve"], 3, failures_max);
        step(&mut site, 0);
        site.settle();
        site.stand(1, refused());
        site.stand(2, refused());
        step(&mut site, 0);
        let is_stopped = matches!(site.rollout.state, RolloutState::Stopped { .. });
        assert_eq!(is_stopped, stops, "{failures_max}");
        if stops {
            assert!(site.stop_reason().contains("2 agents failed"));
        }
    }
}

#[test]
fn two_tenants_of_many_do_not_stop_a_rollout_and_three_do() {
    let tenants = ["eve1", "eve2", "ada", "bob", "cyd", "dan", "fay"];
    let mut site = site(&tenants, 2, 0);
    step(&mut site, 0);
    site.stand(1, refused());
    site.stand(2, refused());
    step(&mut site, 0);
    assert_eq!(site.rollout.state, RolloutState::Running);
    // The others are asked, one after the other, and prove it.
    assert_eq!(site.reach(), (1, 3));
    site.stand(3, AgentStanding::Settled);
    step(&mut site, 0);
    assert_eq!(site.reach(), (1, 4));
    let mut bad = site.rollout.clone();
    site.stand(4, AgentStanding::Settled);
    step(&mut site, 0);
    step(&mut site, HEALTHY_MS);
    assert_eq!(site.reach(), (2, 7));
    // A third one fails instead.
    std::mem::swap(&mut site.rollout, &mut bad);
    site.stand(4, refused());
    step(&mut site, 0);
    assert!(site.stop_reason().contains("3 agents failed, 0 may"));
}

#[test]
fn the_only_tenant_of_a_site_stops_a_rollout_as_agents_of_the_site_do() {
    let mut site = site(&["ada", "ada"], 1, 0);
    step(&mut site, 0);
    site.stand(1, refused());
    step(&mut site, 0);
    assert!(site.stop_reason().contains(&agent(1).to_string()));
}

#[test]
fn tenants_that_all_failed_stop_a_rollout_once_more_than_may_failed() {
    let mut site = site(&["ada", "bob"], 2, 0);
    step(&mut site, 0);
    // One refuses and the other is late.
    site.stand(1, refused());
    step(&mut site, 0);
    assert_eq!(site.rollout.state, RolloutState::Running);
    step(&mut site, PATIENCE_MS);
    assert!(site.stop_reason().contains("2 agents failed, 0 may"));
}
