//! Rules of claims, checked before they are written.

use proto_errors::{Error, ErrorCode};
use proto_types::{ClaimId, Digest, MachineId, ProjectId};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::provision::to_allocation;
use crate::claim::entity::{
    CLAIMS_PER_PROJECT_MAX, CLASSES_PER_PROJECT_MAX, Claim, ClaimSelector, ClaimSpec, LostRule,
    ReuseWish, SELECTOR_TERMS_MAX, SELECTOR_VALUES_MAX, SelectorOp, SelectorTerm,
};
use crate::machine::apply::allocate::check_wanted;
use crate::pool::entity::{PRIORITY_MAX, REUSE_MAX_MS};
use crate::reply::CheckResult;
use crate::tables::Tx;

/// Longest key or value of a label, name of a claim, key of a reuse or text of a spread, bytes; a
/// longer one is refused.
const TEXT_BYTES_MAX: usize = 253;
/// Most pools, tolerations or preferred terms of a claim; a request with more is refused.
const WISHES_MAX: usize = 16;
/// Highest weight of a preferred term; a higher one is refused.
const WEIGHT_MAX: u32 = 100;

/// Refuses a text that is empty, too long, or not printable.
pub(super) fn check_text(field: &str, text: &str) -> CheckResult {
    let is_printable = !text.chars().any(char::is_control) && text.trim() == text;
    if (1..=TEXT_BYTES_MAX).contains(&text.len()) && is_printable {
        return Ok(());
    }
    let rule = format!("must have 1 to {TEXT_BYTES_MAX} printable bytes, no blanks at the ends");
    Err(Error::invalid(field, rule))
}

/// Refuses a name that cannot be shown, and one that would be taken for an id: calls name a claim by either of
/// the two.
pub(super) fn check_name(name: &str) -> CheckResult {
    check_text("name", name)?;
    match name.parse::<ClaimId>() {
        Ok(_) => Err(Error::invalid("name", "must not be a UUID")),
        Err(_) => Ok(()),
    }
}

fn check_count(field: &str, count: usize, max: usize) -> CheckResult {
    if count <= max {
        return Ok(());
    }
    Err(Error::invalid(field, format!("must be at most {max}")))
}

fn check_term(term: &SelectorTerm) -> CheckResult {
    let field = "spec.selector.terms";
    check_text(field, &term.key)?;
    check_count(field, term.values.len(), SELECTOR_VALUES_MAX)?;
    let wants_values = matches!(term.op, SelectorOp::In | SelectorOp::NotIn);
    match (wants_values, term.values.is_empty()) {
        (true, true) => Err(Error::invalid(field, "In and NotIn need values")),
        (false, false) => Err(Error::invalid(
            field,
            "Exists and DoesNotExist have no values",
        )),
        _ => Ok(()),
    }
}

fn check_selector(selector: &ClaimSelector) -> CheckResult {
    let count = selector.labels.len() + selector.terms.len();
    check_count("spec.selector", count, SELECTOR_TERMS_MAX)?;
    for key in selector.labels.keys() {
        check_text("spec.selector.labels", key)?;
    }
    selector.terms.iter().try_for_each(check_term)
}

/// Refuses wishes that break a rule.
fn check_wishes(spec: &ClaimSpec) -> CheckResult {
    check_count("spec.pools", spec.pools.len(), WISHES_MAX)?;
    check_selector(&spec.selector)?;
    check_count("spec.preferred", spec.preferred.len(), WISHES_MAX)?;
    for term in &spec.preferred {
        if !(1..=WEIGHT_MAX).contains(&term.weight) {
            let rule = format!("must be in 1..={WEIGHT_MAX}");
            return Err(Error::invalid("spec.preferred.weight", rule));
        }
        check_selector(&term.selector)?;
    }
    check_count("spec.tolerations", spec.tolerations.len(), WISHES_MAX)?;
    for tolerated in &spec.tolerations {
        check_text("spec.tolerations.key", &tolerated.key)?;
    }
    if let Some(wish) = &spec.domain {
        check_text("spec.failure_domain", &wish.name)?;
    }
    if spec.priority > PRIORITY_MAX {
        let rule = format!("must be at most {PRIORITY_MAX}");
        return Err(Error::invalid("spec.priority", rule));
    }
    if let Some(reuse) = &spec.reuse {
        check_text("spec.reuse.key", &reuse.key)?;
        if reuse.keep_ms > REUSE_MAX_MS {
            return Err(Error::invalid("spec.reuse.keep", "must be at most 30 days"));
        }
    }
    if !spec.spread.is_empty() {
        check_text("spec.spread", &spec.spread)?;
    }
    Ok(())
}

/// Refuses an intent that breaks a rule, as far as it is known before there is a host.
pub(super) fn check_spec(tx: &Tx<'_>, claim: &Claim) -> CheckResult {
    check_name(&claim.name)?;
    check_wishes(&claim.spec)?;
    // Without an image nothing is allocated yet, and the parts of it may come later.
    match &claim.spec.image {
        None => Ok(()),
        Some(image) => {
            // Any machine: the rules of the request do not depend on it.
            let machine = MachineId::new(Uuid::nil());
            check_wanted(tx, &to_allocation(claim, image, machine, Uuid::nil()))
        }
    }
}

/// Refuses a claim beyond the bounds of its project.
pub(super) fn check_budget(tx: &Tx<'_>, claim: &Claim, is_new: bool) -> CheckResult {
    let claims = &tx.tables().index().claims;
    let count = claims.of_project(claim.project).map_or(0, |all| all.len());
    let project = claim.project;
    if is_new && count >= CLAIMS_PER_PROJECT_MAX {
        let message = format!("project \"{project}\" has {count} claims already");
        let hint = "delete those that nobody needs: metalmesh claim rm NAME";
        return Err(Error::new(ErrorCode::TooMany, message).hint(hint));
    }
    let is_known = claims.head(project, &claim.queue.class).is_some();
    let classes = claims.class_count(project);
    if claim.is_waiting() && !is_known && classes >= CLASSES_PER_PROJECT_MAX {
        let message =
            format!("claims of project \"{project}\" wait for {classes} different kinds of hosts");
        let hint = "wait until some are served, or give claims the same selector";
        return Err(Error::new(ErrorCode::TooMany, message).hint(hint));
    }
    Ok(())
}

/// Refuses a claim that is not the project's, is over, or whose binding is another one by now. A
/// foreign claim looks as if it did not exist.
pub(super) fn own(
    tx: &Tx<'_>,
    id: ClaimId,
    project: ProjectId,
    epoch: Option<u64>,
) -> Result<Claim, Error> {
    let claim = tx
        .get::<Claim>(&id)
        .filter(|claim| claim.project == project);
    let claim = claim.ok_or_else(|| Error::not_found("claim", id))?;
    let binding = claim.binding.as_ref();
    if let Some(epoch) = epoch
        && binding.map(|binding| binding.epoch) != Some(epoch)
    {
        let message = format!("claim \"{id}\" is not bound in epoch {epoch} any more");
        return Err(Error::new(ErrorCode::Conflict, message).object("claim", id));
    }
    Ok(Claim::clone(claim))
}

/// The class of a claim: SHA-256 over everything that decides which hosts fit. Fields that decide
/// nothing are left out, so that claims that differ only in them wait in one line.
pub(super) fn class_of(spec: &ClaimSpec) -> Result<Digest, Error> {
    let spec = ClaimSpec {
        priority: 0,
        spread: String::new(),
        on_lost: LostRule::default(),
        paused: false,
        powered_on: false,
        hostname: None,
        ssh_public_keys: Vec::new(),
        userdata: String::new(),
        reuse: spec.reuse.clone().map(|reuse| ReuseWish {
            wipe: None,
            ..reuse
        }),
        ..spec.clone()
    };
    let mut bytes = Vec::new();
    ciborium::into_writer(&spec, &mut bytes)
        .map_err(|error| Error::new(ErrorCode::Internal, format!("a claim: {error}")))?;
    Ok(Digest::sha256(Sha256::digest(&bytes).into()))
}
