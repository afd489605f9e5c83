use std::time::Instant;

/// Queries at a time, and units per second (a token bucket), of a client or of a network.
#[derive(Clone, Debug)]
pub(super) struct QueryBudget {
    in_flight: usize,
    in_flight_max: usize,
    units: f64,
    rate: f64,
    at: Instant,
}

impl QueryBudget {
    /// A budget of `rate` units a second, twice as many at once.
    pub(super) fn new(in_flight_max: usize, rate: f64, now: Instant) -> Self {
        Self {
            in_flight: 0,
            in_flight_max,
            units: rate * 2.0,
            rate,
            at: now,
        }
    }

    /// `true` if a place and a unit are left.
    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.units = (self.units + passed * self.rate).min(self.rate * 2.0);
        self.at = now;
        self.in_flight < self.in_flight_max && self.units >= 1.0
    }

    /// Takes a place and a unit.
    pub(super) fn take(&mut self) {
        self.in_flight += 1;
        self.units -= 1.0;
    }

    /// Takes units after a query was answered.
    pub(super) fn charge(&mut self, units: f64) {
        self.units -= units;
    }

    /// Ends a query.
    pub(super) fn give_back(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// `true` if no unit is left.
    pub(super) fn is_spent(&self) -> bool {
        self.units < 1.0
    }

    /// `true` if no query is being answered.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Time of the last query.
    pub(super) fn last_use(&self) -> Instant {
        self.at
    }
}
