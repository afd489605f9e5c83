use proto_mesh::{FIREWALL_DISTANCE_MAX as DISTANCE_MAX, FIREWALL_DISTANCE_STEP as STEP};
use serde::{Deserialize, Serialize};

/// The distance of a firewall's routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteDistance {
    /// AS number of the firewall.
    pub asn: u32,
    /// Number of firewalls that are preferred to it, at most [`DISTANCE_MAX`].
    pub distance: u32,
}

impl RouteDistance {
    /// The distance that control orders. `None` without an AS number: control is too old to say.
    #[must_use]
    pub fn ordered(asn: u32, distance: u32) -> Option<Self> {
        (asn != 0).then(|| Self {
            asn,
            distance: distance.min(DISTANCE_MAX),
        })
    }

    /// The longest distance, if the rules are not in force.
    #[must_use]
    pub fn with_health(self, is_in_force: bool) -> Self {
        match is_in_force {
            true => self,
            false => Self {
                distance: DISTANCE_MAX,
                ..self
            },
        }
    }

    /// The distance that so many AS numbers in front of a path are. `None` for another number.
    pub(super) fn of_prepended(numbers: usize) -> Option<u32> {
        let numbers = u32::try_from(numbers).ok()?;
        let distance = numbers / STEP;
        (numbers % STEP == 0 && distance <= DISTANCE_MAX).then_some(distance)
    }

    /// Number of AS numbers in front of the paths of its routes.
    pub(super) fn prepended(self) -> usize {
        usize::try_from(self.distance.min(DISTANCE_MAX) * STEP).unwrap_or(usize::MAX)
    }

    /// FRR's command within the route map.
    pub(super) fn command(self) -> String {
        if self.prepended() == 0 {
            return "no set as-path prepend".to_owned();
        }
        let numbers = vec![self.asn.to_string(); self.prepended()];
        format!("set as-path prepend {}", numbers.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_a_longer_path() {
        let of = |distance| RouteDistance::ordered(65_000, distance).unwrap();
        for (distance, prepended) in [(0, 0), (1, 6), (8, 48), (9, 48), (u32::MAX, 48)] {
            assert_eq!(of(distance).prepended(), prepended, "{distance}");
            let read = RouteDistance::of_prepended(prepended);
            assert_eq!(read, Some(distance.min(DISTANCE_MAX)));
        }
        for prepended in [1, 7, 54, usize::MAX] {
            assert_eq!(RouteDistance::of_prepended(prepended), None, "{prepended}");
        }
        assert_eq!(of(0).command(), "no set as-path prepend");
        assert_eq!(
            of(1).command(),
            "set as-path prepend 65000 65000 65000 65000 65000 65000"
        );
        assert_eq!(RouteDistance::ordered(0, 0), None);
    }

    #[test]
    fn routes_keep_away_while_the_rules_are_not_in_force() {
        let active = RouteDistance::ordered(65_000, 0).unwrap();
        assert_eq!(active.with_health(true), active);
        assert_eq!(active.with_health(false).distance, DISTANCE_MAX);
    }
}
