//! The validation rules that the contract itself carries (`buf.validate`).
//!
//! The rules in use are few and closed, so they are read from the descriptors once and checked
//! by plain code instead of a CEL interpreter ([`prost-protovalidate`] would need an installed
//! protoc and brings an ANTLR parser). A rule that this module does not know makes its tests
//! fail, so a newer contract cannot silently go unchecked; the conformance test compares the
//! verdicts with those of the published validator.
//!
//! As everywhere in protovalidate: fields with presence are checked when set, others always;
//! messages are checked in depth.
//!
//! [`prost-protovalidate`]: https://docs.rs/prost-protovalidate

mod formats;
mod known;
mod plan;
mod respell;
mod rule;
mod unruled;
mod uri;
mod walk;

use std::fmt;
use std::sync::LazyLock;
use std::time::SystemTime;

use prost_reflect::{DynamicMessage, ReflectMessage};

use crate::Request;
use plan::Plans;

/// Most violations reported for one request. The check stops there.
const VIOLATIONS_MAX: usize = 20;

static PLANS: LazyLock<Plans> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "a test compiles the same embedded rules"
    )]
    Plans::compile(crate::pool()).expect("rules of the contract are known")
});

/// One field that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path from the request, such as `partition.dns_servers[1].ip` or `labels["a b"]`.
    pub field: String,
    /// The rule, such as `string.uuid`.
    pub rule: &'static str,
    /// The reason why the value is invalid.
    pub message: String,
}

/// The violations of one request: at least one, at most twenty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// The violations, in the order of the fields.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }
}

impl std::error::Error for Violations {}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |v: &Violation| match v.field.as_str() {
            "" => v.message.clone(),
            field => format!("{field}: {}", v.message),
        };
        match self.0.as_slice() {
            [one] => write!(f, "validation error: {}", line(one)),
            all => {
                f.write_str("validation errors:")?;
                all.iter().try_for_each(|v| write!(f, "\n - {}", line(v)))
            }
        }
    }
}

/// Checks a message of the contract against its rules. `now` serves the rules about time.
pub fn validate(message: &DynamicMessage, now: SystemTime) -> Result<(), Violations> {
    let mut found = walk::Found::new(VIOLATIONS_MAX, now);
    PLANS.check(message.descriptor().full_name(), message, &mut found);
    match found.violations {
        none if none.is_empty() => Ok(()),
        some => Err(Violations(some)),
    }
}

/// Rewrites the ids of a message of the contract to their canonical form: UUIDs, MAC addresses, IP
/// addresses and prefixes, also as keys of maps. `true` if anything was changed.
///
/// # Errors
/// Two keys of a map are the same id.
pub fn one_spelling(message: &mut DynamicMessage) -> Result<bool, Violations> {
    let name = message.descriptor().full_name().to_owned();
    let outcome = PLANS.respell(&name, message);
    outcome.map_err(|violation| Violations(vec![violation]))
}

/// Checks a typed request.
pub fn validate_request<R: Request>(request: &R, now: SystemTime) -> Result<(), Violations> {
    let bytes = request.encode_to_vec();
    match DynamicMessage::decode(R::method().input.clone(), bytes.as_slice()) {
        Ok(message) => validate(&message, now),
        Err(error) => Err(Violations(vec![Violation {
            field: String::new(),
            rule: "encoding",
            message: error.to_string(),
        }])),
    }
}

#[cfg(test)]
mod respell_tests;
#[cfg(test)]
mod tests;
