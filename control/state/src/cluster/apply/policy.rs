//! Site policies. The proposer compiles them first; `apply` stores text.

use proto_errors::{Error, ErrorCode};

use crate::bounds::POLICY_BYTES_MAX;
use crate::cluster::command::{RemovePolicy, SetPolicy};
use crate::cluster::entity::{POLICIES_MAX, Policy};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Longest name of a policy, characters; a longer one is refused.
const NAME_LEN_MAX: usize = 63;

pub(crate) fn set(tx: &mut Tx<'_>, op: &SetPolicy) -> ApplyResult {
    check_name(&op.name)?;
    if op.source.len() > POLICY_BYTES_MAX {
        let rule = format!("must have at most {POLICY_BYTES_MAX} bytes");
        return Err(Error::invalid("policy.source", rule));
    }
    if op.methods.is_empty() {
        return Err(Error::invalid("policy.methods", "must not be empty"));
    }
    let known = tx.get::<Policy>(&op.name).map(|policy| policy.generation);
    let is = known.unwrap_or_default();
    if op.expected.is_some_and(|expected| expected != is) {
        let message = format!("policy \"{}\" is of generation {is}", op.name);
        return Err(Error::new(ErrorCode::Conflict, message).object("policy", &op.name));
    }
    if known.is_none() && tx.tables().table::<Policy>().len() >= POLICIES_MAX {
        let message = format!("there are {POLICIES_MAX} policies already");
        let hint = "remove one, or put two into one: metalmesh policy ls";
        return Err(Error::new(ErrorCode::TooMany, message).hint(hint));
    }
    let policy = Policy {
        name: op.name.clone(),
        source: op.source.clone(),
        methods: op.methods.clone(),
        generation: is + 1,
        updated_by: tx.actor.to_owned(),
        updated_at: tx.now,
    };
    Ok(Reply::Policy(tx.save(policy)))
}

pub(crate) fn remove(tx: &mut Tx<'_>, op: &RemovePolicy) -> ApplyResult {
    let old = tx.delete::<Policy>(&op.name);
    old.map(Reply::Policy)
        .ok_or_else(|| Error::not_found("policy", &op.name))
}

fn check_name(name: &str) -> CheckResult {
    let letters = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let ends = name.starts_with('-') || name.ends_with('-');
    if name.is_empty() || name.len() > NAME_LEN_MAX || !letters || ends {
        let rule = "must be 1 to 63 small letters, digits and dashes within";
        return Err(Error::invalid("policy.name", rule));
    }
    Ok(())
}
