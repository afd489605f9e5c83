//! Flags of `metalmesh network update` that clear lists.

use clap::Args;
use proto_public::admin::v2 as admin;

/// The prefix that clears a list in an update: the contract cannot tell an empty list from none.
const NO_PREFIX: &str = "0.0.0.0/32";

/// Lists that an administrator's update clears.
#[derive(Debug, Args)]
pub(crate) struct NetworkClearArgs {
    /// Remove all destination prefixes.
    #[arg(long)]
    no_destinations: bool,
    /// Remove all additional announcable prefixes; needs --force.
    #[arg(long)]
    no_announcable: bool,
    /// Remove announcable prefixes even if machines still announce them.
    #[arg(long, requires = "no_announcable")]
    force: bool,
}

impl NetworkClearArgs {
    pub(super) fn any(&self) -> bool {
        self.no_destinations || self.no_announcable
    }

    /// Replaces the lists to clear by the prefix that clears them.
    pub(super) fn fill(&self, request: &mut admin::NetworkServiceUpdateRequest) {
        if self.no_destinations {
            request.destination_prefixes = vec![NO_PREFIX.to_owned()];
        }
        if self.no_announcable {
            request.additional_announcable_cidrs = vec![NO_PREFIX.to_owned()];
        }
        request.force = self.force;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_lists_are_emptied() {
        let filled = |no_destinations, no_announcable| {
            let mut request = admin::NetworkServiceUpdateRequest {
                destination_prefixes: vec!["0.0.0.0/0".into()],
                additional_announcable_cidrs: vec!["10.200.0.0/16".into()],
                ..Default::default()
            };
            let emptied = NetworkClearArgs {
                no_destinations,
                no_announcable,
                force: no_announcable,
            };
            emptied.fill(&mut request);
            assert_eq!(emptied.any(), no_destinations || no_announcable);
            let [destinations, announcable] = [
                request.destination_prefixes.concat(),
                request.additional_announcable_cidrs.concat(),
            ];
            (destinations, announcable, request.force)
        };
        let expect = |a: &str, b: &str, force| (a.to_owned(), b.to_owned(), force);
        let all = [("0.0.0.0/0", false), (NO_PREFIX, true)];
        for (destinations, no_destinations) in all {
            for (announcable, no_announcable) in [("10.200.0.0/16", false), (NO_PREFIX, true)] {
                assert_eq!(
                    filled(no_destinations, no_announcable),
                    expect(destinations, announcable, no_announcable)
                );
            }
        }
    }
}
