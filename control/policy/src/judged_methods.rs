//! The methods that a policy judges, from the value of its rule `methods`.

use std::collections::BTreeSet;

use control_authz::is_judged;
use proto_public::{Method, methods};
use regorus::Value;

use crate::verb::text;

/// The methods that a policy judges, by index.
#[derive(Debug)]
pub(crate) struct JudgedMethods {
    /// Every method that the policy judges.
    pub(crate) all: BTreeSet<usize>,
    /// The subset that the policy names in full.
    pub(crate) named: BTreeSet<usize>,
}

impl JudgedMethods {
    /// The methods that the value names.
    ///
    /// # Errors
    /// The fault of the value: not a set of texts, or a text without a method that policies judge.
    pub(crate) fn of(value: &Value) -> Result<Self, String> {
        let texts: Option<Vec<String>> = match value {
            Value::Set(items) => items.iter().map(text).collect(),
            Value::Array(items) => items.iter().map(text).collect(),
            _ => None,
        };
        let texts = texts
            .filter(|texts| !texts.is_empty())
            .ok_or("must be a set of texts, without looking at the input")?;
        let (mut all, mut named) = (BTreeSet::new(), BTreeSet::new());
        for wanted in texts {
            let found = matching(&wanted);
            if found.is_empty() {
                return Err(format!(
                    "{wanted:?} is no method; write one like \
                     \"metalstack.api.v2.MachineService/Delete\", or a begin and *"
                ));
            }
            if found.iter().all(|method| !is_judged(method)) {
                return Err(format!("{wanted:?} is never judged by a policy"));
            }
            let found = found.into_iter().filter(|method| is_judged(method));
            let found: Vec<usize> = found.map(|method| method.index).collect();
            if !wanted.ends_with('*') {
                named.extend(&found);
            }
            all.extend(found);
        }
        Ok(Self { all, named })
    }
}

/// The methods that a member of `methods` matches: a full path, or a prefix and `*`.
fn matching(wanted: &str) -> Vec<&'static Method> {
    let wanted = wanted.trim_start_matches('/');
    let path = |method: &'static Method| method.path.trim_start_matches('/');
    match wanted.strip_suffix('*') {
        Some(begin) => {
            let all = methods().iter();
            all.filter(|method| path(method).starts_with(begin))
                .collect()
        }
        None => methods()
            .iter()
            .filter(|method| path(method) == wanted)
            .collect(),
    }
}
