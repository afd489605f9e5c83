use proto_firewall::{PREFIXES_TOTAL_MAX, Violation};

use super::Problem;
use super::known::Outcome;

/// The prefixes that were made of the objects so far. It bounds the agent's memory: a few exceptions
/// split a prefix into thousands, in objects that are refused later because they have too many
/// entries together.
#[derive(Debug, Default)]
pub(super) struct PrefixBudget {
    made: usize,
}

impl PrefixBudget {
    /// `true` if no object is read any more.
    pub(super) fn is_used_up(&self) -> bool {
        self.made > PREFIXES_TOTAL_MAX
    }

    /// The outcome of `read`, with its prefixes taken; a problem of `place` without reading if those
    /// before have used up all.
    pub(super) fn bounded(
        &mut self,
        place: impl FnOnce() -> String,
        read: impl FnOnce() -> Outcome,
    ) -> Outcome {
        if self.is_used_up() {
            let problem =
                format!("the rules before it need more than {PREFIXES_TOTAL_MAX} prefixes");
            let remedy = "use fewer or shorter exceptions, or fewer prefixes";
            let violation = Violation::new("the object", problem, remedy);
            return Err(Problem::new(place(), violation));
        }
        let rules = read()?;
        let prefixes = rules
            .iter()
            .map(|rule| rule.sources.len() + rule.destinations.len());
        self.made += prefixes.sum::<usize>();
        Ok(rules)
    }
}
