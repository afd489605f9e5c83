//! The agent's reports to control.

use std::sync::Arc;

use proto_mesh::{FirewallAppliedSet, FirewallDesired, FirewallRefusal, FirewallReport};

use crate::source::{AppliedObjects, SourceObjects};

/// Most refused objects that a report names.
pub(super) const REFUSED_MAX: usize = 64;

/// The desired states that were delivered, and the last report.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The newest desired state, without its contents, and its objects.
    newest: Option<DeliveredState>,
    /// That of which the kernel has the objects.
    applied: Option<DeliveredState>,
    problems: Vec<FirewallRefusal>,
    error: String,
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
        let is_applied = self
            .applied
            .as_ref()
            .is_some_and(|applied| applied.objects == newest.objects);
        self.newest = Some(newest.clone());
        if !is_applied {
            return None;
        }
        self.applied = Some(newest);
        Some(self.report())
    }

    /// Takes a desired state that cannot be used.
    pub(super) fn refuse(&mut self, reason: String) -> FirewallReport {
        self.error = reason;
        self.report()
    }

    /// Takes what became of a snapshot.
    pub(super) fn take(&mut self, applied: &AppliedObjects) -> FirewallReport {
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
                let newest = self.newest.as_ref();
                if let Some(newest) = newest.filter(|newest| newest.objects == applied.objects) {
                    self.applied = Some(newest.clone());
                }
            }
        }
        self.report()
    }

    fn report(&self) -> FirewallReport {
        let applied = self.applied.as_ref();
        FirewallReport {
            applied_term: applied.map_or(0, |applied| applied.term),
            applied_generation: applied.map_or(0, |applied| applied.generation),
            sets: applied
                .map(|applied| applied.sets.clone())
                .unwrap_or_default(),
            refused: self.problems.clone(),
            error: self.error.clone(),
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
        let report = reports.take(&applied(&empty, None));
        assert_eq!(
            (report.applied_generation, report.sets[0].revision),
            (10, 1)
        );

        // Other rules that are rolled back: the first ones stay applied.
        let second = desired(11, 2, r#"{"egress_policies": [{"name": "web"}]}"#);
        let web = objects(&second).unwrap();
        assert_eq!(reports.deliver(&second, web.clone()), None);
        let report = reports.take(&applied(&web, Some("a probe failed")));
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
        let report = reports.take(&applied(&empty, None));
        assert_eq!(report.applied_generation, 0);
    }
}
