//! The sampling of traces.

use parking_lot::Mutex;
use rand::Rng as _;

use crate::traces::TraceContext;

/// A second in nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;

/// Decides whether a call is traced: calls whose caller traces, and a share of the others, within
/// one rate limit for both.
#[derive(Debug)]
pub struct Sampler {
    share: f64,
    /// Mean time between two traces, nanoseconds. `None` means that no call is traced.
    pause_ns: Option<u64>,
    /// Theoretical arrival time of the next trace (GCRA), nanoseconds.
    through_ns: Mutex<u64>,
}

impl Sampler {
    /// Samples `share` (0 to 1) of the calls without a trace context, and at most `per_second`
    /// traces in total. 0 disables tracing.
    pub fn new(share: f64, per_second: u32) -> Self {
        Self {
            share,
            pause_ns: SECOND_NS.checked_div(u64::from(per_second)),
            through_ns: Mutex::new(0),
        }
    }

    /// The trace context of a call and the span of its parent. `None` means the call is not traced.
    ///
    /// `outside` is the context that the caller sent. `may_begin` is `true` if a call without one may
    /// begin a trace.
    pub fn take(
        &self,
        outside: Option<TraceContext>,
        may_begin: bool,
        now_ns: u64,
    ) -> Option<(TraceContext, Option<[u8; 8]>)> {
        let taken = match outside {
            Some(outside) if !outside.is_sampled => return None,
            Some(outside) => (outside.child(), Some(outside.span)),
            None if may_begin && rand::rng().random::<f64>() < self.share => {
                (TraceContext::root(), None)
            }
            None => return None,
        };
        self.has_room(now_ns).then_some(taken)
    }

    /// Counts a trace against the rate (GCRA). The burst allowance is one second.
    fn has_room(&self, now_ns: u64) -> bool {
        let Some(pause) = self.pause_ns else {
            return false;
        };
        let mut through = self.through_ns.lock();
        let next = (*through).max(now_ns) + pause;
        if next > now_ns + SECOND_NS {
            return false;
        }
        *through = next;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSIDE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn callers_that_trace_go_on_with_theirs() {
        let sampler = Sampler::new(0.0, 100);
        let outside: TraceContext = OUTSIDE.parse().unwrap();
        let (context, parent) = sampler.take(Some(outside), false, 0).unwrap();
        assert_eq!((context.trace, parent), (outside.trace, Some(outside.span)));
        assert_ne!(context.span, outside.span);
        let unwanted = TraceContext {
            is_sampled: false,
            ..outside
        };
        assert_eq!(sampler.take(Some(unwanted), true, 0), None);
    }

    #[test]
    fn others_begin_one_when_they_may() {
        assert_eq!(Sampler::new(0.0, 100).take(None, true, 0), None);
        let sampler = Sampler::new(1.0, 100);
        assert_eq!(sampler.take(None, false, 0), None);
        let (context, parent) = sampler.take(None, true, 0).unwrap();
        assert!(context.is_sampled && parent.is_none());
    }

    #[test]
    fn there_are_never_more_than_that_a_second() {
        let outside: Option<TraceContext> = OUTSIDE.parse().ok();
        let sampler = Sampler::new(1.0, 10);
        let taken = |now_ns| {
            let of_both = |i| sampler.take(outside.filter(|_| i % 2 == 0), true, now_ns);
            (0..100).filter_map(of_both).count()
        };
        assert_eq!(taken(SECOND_NS), 10);
        assert_eq!(taken(SECOND_NS), 0);
        assert_eq!(taken(SECOND_NS + SECOND_NS / 2), 5);
        assert_eq!(taken(9 * SECOND_NS), 10);
        assert_eq!(Sampler::new(1.0, 0).take(None, true, 0), None);
    }
}
