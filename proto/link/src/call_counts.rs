//! Counters of calls, by method and code.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::method::MethodSpec;
use crate::stats::CallCount;
use crate::status::Code;

/// Number of status codes.
const CODES: u8 = 17;

#[derive(Debug, Default)]
struct CodeCounts([AtomicU64; CODES as usize]);

/// Counts the calls of a server's methods.
#[derive(Debug)]
pub(crate) struct CallCounts {
    methods: BTreeMap<&'static str, CodeCounts>,
    unknown: CodeCounts,
}

impl CallCounts {
    pub(crate) fn of(methods: impl Iterator<Item = &'static MethodSpec>) -> Self {
        Self {
            methods: methods
                .map(|method| (method.path, CodeCounts::default()))
                .collect(),
            unknown: CodeCounts::default(),
        }
    }

    pub(crate) fn add(&self, method: Option<&'static MethodSpec>, code: Code) {
        let counts = method.and_then(|method| self.methods.get(method.path));
        // All unknown methods share one counter: a caller that invents paths must not make the
        // metrics grow.
        let counts = counts.unwrap_or(&self.unknown);
        if let Some(count) = counts.0.get(usize::from(code as u8)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn counted(&self) -> Vec<CallCount> {
        let known = self.methods.iter().map(|(path, counts)| (*path, counts));
        let all = known.chain(std::iter::once(("unknown", &self.unknown)));
        all.flat_map(|(method, counts)| {
            let codes = (0..CODES).map(Code::from_u8).zip(&counts.0);
            codes.map(move |(code, count)| CallCount {
                method,
                code,
                count: count.load(Ordering::Relaxed),
            })
        })
        .filter(|calls| calls.count > 0)
        .collect()
    }
}
