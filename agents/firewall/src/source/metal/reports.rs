//! The agent's reports to control.

use std::sync::Arc;

use agents_update::{UpdateStatus, running_version};
use proto_mesh::{
    FirewallAppliedSet, FirewallDesired, FirewallRefusal, FirewallReport, FirewallRoutes,
    FirewallUpdate,
};

use crate::routes::ObservedDistance;
use crate::source::{AppliedObjects, SourceObjects};

/// Most refused objects that a report names.
pub(super) const REFUSED_MAX: usize = 64;

/// The desired states that were delivered, and the last report.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The newest desired state, without its contents, and its objects.
    newest: Option<DeliveredState>,
    /// The objects that the kernel has. They may be older than every desired state that was
    /// delivered: after a start they are the last good ones.
    in_force: Option<Arc<SourceObjects>>,
    /// The desired state of which the kernel has the objects.
    applied: Option<DeliveredState>,
    problems: Vec<FirewallRefusal>,
    error: String,
    routes: Option<FirewallRoutes>,
    update: Option<FirewallUpdate>,
    /// `true` once there is a report about rules.
    is_begun: bool,
}

/// A desired state and the objects that were made of it.
#[derive(Clone, Debug)]
struct DeliveredState {
    term: u64,
    generation: u64,
    sets: Vec<FirewallAppliedSet>,
    objects: Arc<SourceObjects>,
}

impl Reports {
    /// Takes a desired state that goes to the agent. Returns a report if nothing changes with it in
    /// the kernel.
    pub(super) fn deliver(
        &mut self,
        desired: &FirewallDesired,
        objects: SourceObjects,
    ) -> Option<FirewallReport> {
        let sets = desired.sets.iter().map(|set| FirewallAppliedSet {
            id: set.id.clone(),
            revision: set.revision,
        });
        let newest = DeliveredState {
            term: desired.term,
            generation: desired.generation,
            sets: sets.collect(),
            objects: Arc::new(objects),
        };
        let is_applied = self.in_force.as_ref() == Some(&newest.objects);
        self.newest = Some(newest.clone());
        if !is_applied {
            return None;
        }
        self.applied = Some(newest);
        self.error.clear();
        Some(self.report())
    }

    /// Takes what the routing daemon has. Returns no report before there is one about rules: control
    /// would read in it that the kernel has none, and prefer another firewall.
    pub(super) fn observe(&mut self, observed: Option<ObservedDistance>) -> Option<FirewallReport> {
        self.routes = observed.map(|observed| FirewallRoutes {
            wanted: observed.wanted,
            observed: observed.observed,
            error: observed.error,
        });
        self.is_begun.then(|| self.report())
    }

    /// Takes the state of self-update. Returns no report before there is one about rules, as
    /// [`Reports::observe`], nor if control knows it.
    pub(super) fn observe_update(&mut self, status: &UpdateStatus) -> Option<FirewallReport> {
        let wanted = status.wanted.as_ref().map(ToString::to_string);
        let update = Some(FirewallUpdate {
            phase: status.phase.name().to_owned(),
            wanted: wanted.unwrap_or_default(),
            error: status.last_error.clone(),
        });
        let is_new = self.update != update;
        self.update = update;
        (is_new && self.is_begun).then(|| self.report())
    }

    /// Takes a desired state that cannot be used.
    pub(super) fn refuse(&mut self, reason: String) -> FirewallReport {
        self.error = reason;
        self.report()
    }

    /// Takes what became of a snapshot. Returns no report before a desired state was delivered: of
    /// the last good objects nobody knows which revisions they are.
    pub(super) fn take(&mut self, applied: &AppliedObjects) -> Option<FirewallReport> {
        self.problems = applied
            .problems
            .iter()
            .take(REFUSED_MAX)
            .map(refusal)
            .collect();
        match &applied.refusal {
            Some(reason) => self.error.clone_from(reason),
            None => {
                self.error.clear();
                self.in_force = Some(Arc::clone(&applied.objects));
                let newest = self.newest.as_ref();
                if let Some(newest) = newest.filter(|newest| newest.objects == applied.objects) {
                    self.applied = Some(newest.clone());
                }
            }
        }
        self.newest.is_some().then(|| self.report())
    }

    fn report(&mut self) -> FirewallReport {
        self.is_begun = true;
        let applied = self.applied.as_ref();
        FirewallReport {
            applied_term: applied.map_or(0, |applied| applied.term),
            applied_generation: applied.map_or(0, |applied| applied.generation),
            sets: applied
                .map(|applied| applied.sets.clone())
                .unwrap_or_default(),
            refused: self.problems.clone(),
            error: self.error.clone(),
            agent_version: running_version().to_owned(),
            routes: self.routes.clone(),
            update: self.update.clone(),
        }
    }
}

pub(super) fn refusal(problem: &crate::admit::Problem) -> FirewallRefusal {
    FirewallRefusal {
        object: problem.object.clone(),
        field: problem.field.clone(),
        problem: problem.problem.clone(),
        remedy: problem.remedy.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::metal::objects::objects;

    fn desired(generation: u64, revision: u64, content: &str) -> FirewallDesired {
        FirewallDesired {
            term: 3,
            generation,
            sets: vec![proto_mesh::FirewallRuleSet {
                id: "firewall/x/tenant".to_owned(),
                revision,
                content: content.as_bytes().to_vec(),
            }],
            ..FirewallDesired::default()
        }
    }

    fn applied(objects: &SourceObjects, refusal: Option<&str>) -> AppliedObjects {
        AppliedObjects {
            objects: Arc::new(objects.clone()),
            problems: Arc::default(),
            refusal: refusal.map(str::to_owned),
        }
    }

    #[test]
    fn a_revision_is_applied_once_the_kernel_has_its_objects() {
        let mut reports = Reports::default();
        let first = desired(10, 1, "{}");
        let empty = objects(&first).unwrap();
        assert_eq!(reports.deliver(&first, empty.clone()), None);
        let report = reports.take(&applied(&empty, None)).unwrap();
        assert_eq!(
            (report.applied_generation, report.sets[0].revision),
            (10, 1)
        );

        // Other rules that are rolled back: the first ones stay applied.
        let second = desired(11, 2, r#"{"egress_policies": [{"name": "web"}]}"#);
        let web = objects(&second).unwrap();
        assert_eq!(reports.deliver(&second, web.clone()), None);
        let report = reports.take(&applied(&web, Some("a probe failed")));
        let report = report.unwrap();
        assert_eq!(
            (report.applied_generation, report.sets[0].revision),
            (10, 1)
        );
        assert_eq!(report.error, "a probe failed");

        // The same objects as in the kernel under another revision.
        let third = desired(12, 3, "{}");
        let report = reports.deliver(&third, empty).unwrap();
        assert_eq!(
            (report.applied_generation, report.sets[0].revision),
            (12, 3)
        );
        assert_eq!(report.error, "", "the newest rules are in the kernel");
    }

    #[test]
    fn routes_are_told_once_there_is_a_report_about_rules() {
        let mut reports = Reports::default();
        let observed = |distance| {
            Some(ObservedDistance {
                wanted: 0,
                observed: Some(distance),
                error: String::new(),
            })
        };
        assert_eq!(
            reports.observe(observed(8)),
            None,
            "the agent has just started"
        );
        let first = desired(10, 1, "{}");
        let empty = objects(&first).unwrap();
        reports.deliver(&first, empty.clone());
        let report = reports.take(&applied(&empty, None)).unwrap();
        assert_eq!(report.routes.unwrap().observed, Some(8));
        let report = reports.observe(observed(0)).unwrap();
        assert_eq!((report.applied_generation, report.sets.len()), (10, 1));
        assert_eq!(report.routes.unwrap().observed, Some(0));
        assert_eq!(report.agent_version, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn self_update_is_told_once_there_is_a_report_about_rules() {
        use agents_update::{ProgramRole, UpdatePhase};
        let mut reports = Reports::default();
        let mut status = UpdateStatus {
            version: "1.2.0".parse().unwrap(),
            head_digest: None,
            role: ProgramRole::Installed,
            wanted: Some("1.3.0".parse().unwrap()),
            phase: UpdatePhase::Scheduled,
            last_error: String::new(),
            failures: 0,
            failed: Vec::new(),
        };
        assert_eq!(reports.observe_update(&status), None, "it has just started");
        let first = desired(10, 1, "{}");
        let empty = objects(&first).unwrap();
        reports.deliver(&first, empty.clone());
        let update = |report: FirewallReport| report.update.unwrap();
        let report = reports.take(&applied(&empty, None)).unwrap();
        let told = update(report);
        assert_eq!(
            (told.phase.as_str(), told.wanted.as_str()),
            ("scheduled", "1.3.0")
        );
        status.failures = 1;
        assert_eq!(
            reports.observe_update(&status),
            None,
            "nothing that control shows"
        );
        status.phase = UpdatePhase::Failed;
        status.last_error = "expiry: it was valid until yesterday".to_owned();
        let told = update(reports.observe_update(&status).unwrap());
        assert_eq!(
            (told.phase.as_str(), told.error),
            ("failed", status.last_error)
        );
    }

    #[test]
    fn a_late_answer_about_older_objects_applies_nothing_newer() {
        let mut reports = Reports::default();
        let first = desired(10, 1, "{}");
        let empty = objects(&first).unwrap();
        assert_eq!(reports.deliver(&first, empty.clone()), None);
        let second = desired(11, 2, r#"{"egress_policies": [{"name": "web"}]}"#);
        let web = objects(&second).unwrap();
        assert_eq!(reports.deliver(&second, web), None);
        let report = reports.take(&applied(&empty, None)).unwrap();
        assert_eq!(report.applied_generation, 0);
    }

    #[test]
    fn the_last_good_objects_are_reported_as_the_desired_state_that_has_them() {
        let mut reports = Reports::default();
        let first = desired(10, 1, "{}");
        let empty = objects(&first).unwrap();
        // The agent has started, and control has not said anything yet.
        assert_eq!(reports.take(&applied(&empty, None)), None);
        let report = reports.deliver(&first, empty).unwrap();
        assert_eq!(
            (report.applied_generation, report.sets[0].revision),
            (10, 1)
        );
    }
}
