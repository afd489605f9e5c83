//! The next step of a roll, from what control says of both firewalls.

use proto_public::metalmesh::admin::v1::FirewallStatus;

/// The fault of a firewall that lacks rules of the one whose place it took: they would end with that.
const RULES_DIFFER: &str = "rules-differ";

/// Both firewalls, as control shows them.
#[derive(Debug, Default)]
pub(super) struct RollView {
    /// The firewall that is replaced.
    pub(super) old: FirewallStatus,
    /// Its replacement. `None` means that there is none yet.
    pub(super) new: Option<FirewallStatus>,
    /// Phase and newest event of the replacement. `None` means that it has none yet.
    pub(super) progress: Option<String>,
    /// Why the replacement will never run. `None` means that it may.
    pub(super) failure: Option<String>,
}

/// A step of a roll. Each can be repeated, so that a roll that was interrupted begins with the one
/// that is next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RollStep {
    /// Allocate a replacement.
    Allocate,
    /// Tell control that it is one. It gets the rules of the other firewall.
    Prepare,
    /// Wait, for this.
    Wait(String),
    /// Tell control that it takes the place of the other firewall.
    TakeOver,
    /// Free the other firewall.
    Free,
    /// The other firewall is being freed.
    Done,
    /// The roll cannot go on, for this reason.
    Fail(String),
}

impl RollView {
    /// The next step. `is_forced` frees a firewall that does not say that it is a standby.
    pub(super) fn next_step(&self, is_forced: bool) -> RollStep {
        let Some(new) = &self.new else {
            return match self.old.freed {
                true => RollStep::Fail(format!("{}: it is being freed", self.old.firewall)),
                false => RollStep::Allocate,
            };
        };
        if self.old.freed {
            return RollStep::Done;
        }
        if let Some(failure) = &self.failure {
            return RollStep::Fail(format!("{}: {failure}", new.firewall));
        }
        if new.replaces.is_empty() {
            return RollStep::Prepare;
        }
        if let Some(lack) = self.lack(new) {
            return RollStep::Wait(lack);
        }
        if new.took_over_at.is_none() {
            return RollStep::TakeOver;
        }
        match unmoved(&self.old, new, is_forced) {
            Some(reason) => RollStep::Wait(reason),
            None => RollStep::Free,
        }
    }

    /// The reason why the replacement cannot carry traffic. `None` means that it can.
    fn lack(&self, new: &FirewallStatus) -> Option<String> {
        let id = &new.firewall;
        if !new.healthy {
            let reason = &new.reason;
            let progress = self.progress.as_ref();
            let progress = progress.map_or_else(String::new, |last| format!(" ({last})"));
            return Some(format!("{id}: {reason}{progress}"));
        }
        let mut faults = new.faults.iter();
        if let Some(fault) = faults.find(|fault| fault.code == RULES_DIFFER) {
            return Some(format!("{id}: {}; {}", fault.problem, fault.remedy));
        }
        let mut sets = new.sets.iter();
        let behind = sets.find(|set| set.applied_revision != set.revision)?;
        let (applied, revision, owner) = (behind.applied_revision, behind.revision, &behind.owner);
        Some(format!(
            "{id}: its kernel has revision {applied} of the {owner}'s rules, and not {revision}"
        ))
    }
}

/// The reason why traffic may still go through the old firewall. `None` means that the routes of both
/// were observed where they belong.
fn unmoved(old: &FirewallStatus, new: &FirewallStatus, is_forced: bool) -> Option<String> {
    if new.place >= old.place {
        let (new, old) = (&new.firewall, &old.firewall);
        return Some(format!("{new}: control does not prefer it to {old} now"));
    }
    if let Some(reason) = unobserved(new) {
        return Some(reason);
    }
    let reason = unobserved(old).filter(|_| !is_forced)?;
    let hint = match old.healthy {
        true => "",
        false => "; if it is dead, use --force",
    };
    Some(format!("{reason}{hint}"))
}

/// The reason why a firewall's routes are not known to be at its place.
fn unobserved(status: &FirewallStatus) -> Option<String> {
    let (id, place) = (&status.firewall, status.place);
    let routes = status.routes.as_ref();
    let observed = routes.and_then(|routes| routes.observed);
    match (observed, routes) {
        (Some(observed), _) if observed == place => None,
        (Some(observed), _) => Some(format!(
            "{id}: its routes are at place {observed}, and not {place}"
        )),
        (None, Some(routes)) => Some(format!(
            "{id}: the place of its routes is not known: {}",
            routes.error
        )),
        (None, None) => Some(format!("{id}: it has not said where its routes are")),
    }
}

#[cfg(test)]
mod tests {
    use proto_public::metalmesh::admin::v1::{
        FirewallFault, FirewallRoutesStatus, FirewallSetStatus,
    };

    use super::*;

    fn firewall(id: &str, place: u32, observed: Option<u32>) -> FirewallStatus {
        FirewallStatus {
            firewall: id.into(),
            place,
            healthy: true,
            routes: Some(FirewallRoutesStatus {
                wanted: place,
                observed,
                error: String::new(),
            }),
            ..FirewallStatus::default()
        }
    }

    fn replacement(place: u32, observed: Option<u32>, has_taken: bool) -> FirewallStatus {
        FirewallStatus {
            replaces: "old".into(),
            took_over_at: has_taken.then(prost_types::Timestamp::default),
            ..firewall("new", place, observed)
        }
    }

    fn next(old: FirewallStatus, new: Option<FirewallStatus>) -> RollStep {
        let view = RollView {
            old,
            new,
            progress: Some("installing: Installing".into()),
            failure: None,
        };
        view.next_step(false)
    }

    fn assert_waits(step: RollStep, wanted: &str) {
        let RollStep::Wait(reason) = step else {
            panic!("{step:?} instead of {wanted}");
        };
        assert!(reason.contains(wanted), "{reason}");
    }

    #[test]
    fn each_step_follows_from_what_is_shown() {
        let active = || firewall("old", 0, Some(0));
        let standby = || firewall("old", 1, Some(1));
        for (old, new, wanted) in [
            (active(), None, RollStep::Allocate),
            (
                active(),
                Some(firewall("new", 1, Some(1))),
                RollStep::Prepare,
            ),
            (
                active(),
                Some(replacement(1, Some(1), false)),
                RollStep::TakeOver,
            ),
            (
                standby(),
                Some(replacement(0, Some(0), true)),
                RollStep::Free,
            ),
            (
                FirewallStatus {
                    freed: true,
                    ..standby()
                },
                Some(replacement(0, Some(0), true)),
                RollStep::Done,
            ),
            // A standby is replaced at its place.
            (
                firewall("old", 2, Some(2)),
                Some(replacement(1, Some(1), true)),
                RollStep::Free,
            ),
        ] {
            assert_eq!(next(old, new), wanted);
        }
    }

    #[test]
    fn the_old_firewall_stays_until_the_new_one_was_seen_in_its_place() {
        let installing = FirewallStatus {
            healthy: false,
            reason: "its system does not run yet".into(),
            ..replacement(1, None, false)
        };
        let behind = FirewallStatus {
            sets: vec![FirewallSetStatus {
                owner: "tenant".into(),
                revision: 2,
                applied_revision: 1,
                ..FirewallSetStatus::default()
            }],
            ..replacement(1, Some(1), false)
        };
        let failed = FirewallStatus {
            healthy: false,
            reason: "a probe failed".into(),
            ..replacement(1, Some(1), true)
        };
        let mute = FirewallStatus {
            routes: None,
            ..firewall("old", 1, None)
        };
        let taken = || replacement(0, Some(0), true);
        for (old, new, wanted) in [
            (
                firewall("old", 0, Some(0)),
                installing,
                "does not run yet (installing",
            ),
            (
                firewall("old", 0, Some(0)),
                behind,
                "revision 1 of the tenant's rules",
            ),
            (firewall("old", 0, Some(0)), failed, "a probe failed"),
            (
                firewall("old", 0, Some(0)),
                replacement(1, Some(1), true),
                "does not prefer",
            ),
            (
                firewall("old", 1, Some(1)),
                replacement(0, Some(1), true),
                "new: its routes are at place 1",
            ),
            (
                firewall("old", 1, Some(0)),
                taken(),
                "old: its routes are at place 0",
            ),
            (
                firewall("old", 1, None),
                taken(),
                "old: the place of its routes is not known",
            ),
            (mute, taken(), "old: it has not said"),
        ] {
            assert_waits(next(old, Some(new)), wanted);
        }
    }

    #[test]
    fn the_old_firewall_stays_while_the_new_one_lacks_rules_of_it() {
        let lacking = FirewallStatus {
            faults: vec![FirewallFault {
                code: RULES_DIFFER.into(),
                problem: "revision 3 of the operator's rules".into(),
                ..FirewallFault::default()
            }],
            ..replacement(0, Some(0), true)
        };
        let view = RollView {
            old: firewall("old", 1, Some(1)),
            new: Some(lacking),
            ..RollView::default()
        };
        for is_forced in [false, true] {
            assert_waits(view.next_step(is_forced), "new: revision 3 of");
        }
    }

    #[test]
    fn a_dead_firewall_is_freed_by_force_alone() {
        let dead = FirewallStatus {
            healthy: false,
            ..firewall("old", 1, Some(0))
        };
        let view = RollView {
            old: dead,
            new: Some(replacement(0, Some(0), true)),
            ..RollView::default()
        };
        assert_waits(view.next_step(false), "--force");
        assert_eq!(view.next_step(true), RollStep::Free);
        // Force does not free one whose replacement is not in its place.
        let view = RollView {
            new: Some(replacement(0, Some(8), true)),
            ..view
        };
        assert_waits(view.next_step(true), "new: its routes are at place 8");
    }

    #[test]
    fn a_failed_replacement_ends_the_roll() {
        let view = RollView {
            old: firewall("old", 0, Some(0)),
            new: Some(firewall("new", 1, None)),
            progress: None,
            failure: Some("it is tainted".into()),
        };
        let failed = RollStep::Fail("new: it is tainted".into());
        assert_eq!(view.next_step(true), failed);
        let freed = FirewallStatus {
            freed: true,
            ..firewall("old", 8, None)
        };
        let failed = RollStep::Fail("old: it is being freed".into());
        assert_eq!(next(freed, None), failed);
    }
}
