//! The last reading of one BMC.

use std::time::Duration;

use proto_mesh::PowerDraw;
use tokio::time::Instant;

use crate::driver::Reading;

/// Time for which the last power reading is reported. A BMC that is sometimes too slow must not look
/// like one that reports no power, because control stores that as a change.
const DRAW_AGE_MAX: Duration = Duration::from_secs(5 * 60);

/// The last reading of a BMC and the last successful one.
#[derive(Debug, Default, Clone)]
pub(crate) struct Look {
    pub(crate) reading: Option<Reading>,
    pub(crate) error: String,
    /// Time of the last reading.
    pub(crate) observed: Option<Instant>,
    /// Power consumption and supplies, and the time they were read.
    draw: Option<(PowerDraw, Instant)>,
}

impl Look {
    pub(crate) fn set_reading(&mut self, mut reading: Reading) {
        let now = Instant::now();
        match reading.draw.take() {
            Some(draw) => self.draw = Some((draw, now)),
            None => self.draw = self.draw.take().filter(|(_, at)| now - *at <= DRAW_AGE_MAX),
        }
        self.reading = Some(reading);
        self.error.clear();
    }

    /// `true` if the last reading succeeded.
    pub(crate) fn is_read(&self) -> bool {
        self.reading.is_some() && self.error.is_empty()
    }

    /// Power consumption and supplies for control. `None` means that the BMC does not report them or
    /// cannot be read.
    pub(crate) fn draw(&self) -> Option<PowerDraw> {
        let (draw, _) = self.draw.as_ref().filter(|_| self.error.is_empty())?;
        Some(draw.clone()).filter(|draw| *draw != PowerDraw::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_machine_draws_is_told_while_it_was_read_lately() {
        let mut look = Look::default();
        let mut told = |draw: Option<PowerDraw>| {
            look.set_reading(Reading {
                draw,
                ..Reading::default()
            });
            look.draw()
        };
        let draw = PowerDraw {
            supplies: vec![proto_mesh::PowerSupply::default()],
            ..PowerDraw::default()
        };
        assert_eq!(told(None), None);
        assert_eq!(told(Some(draw.clone())), Some(draw.clone()));
        tokio::time::advance(DRAW_AGE_MAX).await;
        assert_eq!(told(None), Some(draw.clone()), "not read this time");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(told(None), None, "not read for too long");
        told(Some(draw));
        assert_eq!(told(Some(PowerDraw::default())), None, "it tells no more");
    }

    #[test]
    fn a_bmc_that_cannot_be_read_tells_nothing_of_power() {
        let mut look = Look::default();
        let supplies = vec![proto_mesh::PowerSupply::default()];
        look.set_reading(Reading {
            draw: Some(PowerDraw {
                metric: None,
                supplies,
            }),
            ..Reading::default()
        });
        assert!(look.draw().is_some());
        look.error = "silent".into();
        assert_eq!(look.draw(), None);
    }
}
