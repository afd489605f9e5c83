use base_runtime::Chain;

use super::distance::RouteDistance;
use super::frr::FrrError;

/// The distance that FRR has, beside the one that is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedDistance {
    /// The wanted distance.
    pub wanted: u32,
    /// The distance that FRR has, as it was read. `None` if it could not be read, or is none.
    pub observed: Option<u32>,
    /// The reason why nothing was observed. Empty if it was.
    pub error: String,
}

impl ObservedDistance {
    /// Of the number of AS numbers in front of paths that was found in FRR.
    pub(super) fn of(wanted: RouteDistance, found: &Result<usize, FrrError>) -> Self {
        let observed = found.as_ref().ok();
        let observed = observed.and_then(|numbers| RouteDistance::of_prepended(*numbers));
        let error = match found {
            Err(error) => Chain(error).to_string(),
            Ok(numbers) if observed.is_none() => {
                format!("FRR has {numbers} AS numbers in front of paths, which are no distance")
            }
            Ok(_) => String::new(),
        };
        Self {
            wanted: wanted.distance,
            observed,
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frr_has_is_told_beside_what_is_wanted() {
        let wanted = RouteDistance::ordered(65_000, 1).unwrap();
        for (found, observed, error) in [
            (Ok(6), Some(1), ""),
            // Not as wanted, and told all the same.
            (Ok(48), Some(8), ""),
            (Ok(7), None, "no distance"),
            (Err(FrrError::NoRouteMap), None, "no route map"),
            (Err(FrrError::Refused("% x".into())), None, "vtysh: % x"),
        ] {
            let told = ObservedDistance::of(wanted, &found);
            assert_eq!((told.wanted, told.observed), (1, observed), "{found:?}");
            assert!(told.error.contains(error), "{told:?}");
            assert_eq!(told.error.is_empty(), observed.is_some(), "{told:?}");
        }
    }
}
