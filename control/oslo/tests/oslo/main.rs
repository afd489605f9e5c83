//! Policies from outside: the language, the defaults of Ironic, and what the lint says about files.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod bounds;
mod decisions;
mod defaults;
mod expressions;
mod guide;
mod lint;
mod oracle;
mod properties;

use control_oslo::{
    Credentials, OsloPolicy, Persona, PolicyFault, PolicyFile, PolicyTarget, ironic, personas,
};

/// The guide's policy file for Metalsmith, as it is printed there.
const METALSMITH: &str = include_str!("../data/guide-metalsmith.yaml");

fn policy(file: &str) -> OsloPolicy {
    compiled(file).unwrap()
}

fn compiled(file: &str) -> Result<OsloPolicy, PolicyFault> {
    ironic::policy(&PolicyFile::parse(file)?)
}

/// A policy with one rule `x` of its own, which tests ask.
fn of_check(check: &str) -> Result<OsloPolicy, PolicyFault> {
    compiled(&serde_json::json!({ "x": check }).to_string())
}

/// The answer of a rule `x` with this check string.
fn permits(check: &str, caller: &Credentials, target: &PolicyTarget<'_>) -> bool {
    let policy = of_check(check).unwrap();
    policy.decide("x", caller, target).is_permitted()
}

fn persona(name: &str) -> Persona {
    let mut all = personas().into_iter();
    all.find(|persona| persona.name == name).unwrap()
}
