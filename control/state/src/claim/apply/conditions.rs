//! The conditions of a claim: a function of the claim and of its host.
//!
//! Texts tell a project nothing that it may not see: neither which machine it has, nor what others
//! have.

use proto_types::Timestamp;

use crate::claim::entity::{Claim, ClaimCondition, ClaimConditionKind, ClaimState, PendingReason};
use crate::claim::phase::HostSight;

/// The host of a claim, as far as conditions depend on it.
#[derive(Debug, Clone)]
pub(super) struct HostFacts {
    /// Its machine.
    pub(super) sight: HostSight,
    /// `true` if the policies do not admit the project any more.
    pub(super) is_revoked: bool,
    /// `true` if an administrator holds its power.
    pub(super) is_held: bool,
    /// The machine's reason, of an installation that failed.
    pub(super) failure: String,
}

/// A condition before its time is known.
struct Judgement {
    kind: ClaimConditionKind,
    status: bool,
    reason: String,
    message: String,
}

impl Judgement {
    fn new(kind: ClaimConditionKind, status: bool, reason: &str) -> Self {
        Self {
            kind,
            status,
            reason: reason.to_owned(),
            message: String::new(),
        }
    }

    fn saying(self, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..self
        }
    }
}

/// The conditions of a claim. The time of one whose status did not change stays.
pub(super) fn judge(
    claim: &Claim,
    host: Option<&HostFacts>,
    now: Timestamp,
) -> Vec<ClaimCondition> {
    use ClaimConditionKind::{Paused, Ready, SelectorDrift};
    let mut judged = vec![
        associated(claim),
        policy_satisfied(claim, host),
        synchronized(claim, host),
        provisioned(claim, host),
    ];
    let is_ready = judged
        .iter()
        .all(|one| one.status || one.kind == ClaimConditionKind::PolicySatisfied);
    let paused = claim.spec.paused;
    judged.push(Judgement::new(
        Paused,
        paused,
        if paused { "Paused" } else { "NotPaused" },
    ));
    let binding = claim.binding.as_ref();
    let drifts = binding.is_some_and(|binding| binding.selector != claim.spec.selector);
    judged.push(Judgement::new(
        SelectorDrift,
        drifts,
        if drifts { "SelectorChanged" } else { "AsBound" },
    ));
    judged.push(Judgement::new(
        Ready,
        is_ready,
        if is_ready { "Ready" } else { "NotReady" },
    ));
    let generation = claim.observed_generation;
    let dated = judged.into_iter().map(|one| {
        let mut before = claim.conditions.iter();
        let before = before.find(|before| before.kind == one.kind);
        let same = before.filter(|before| before.status == one.status);
        ClaimCondition {
            kind: one.kind,
            status: one.status,
            reason: one.reason,
            message: one.message,
            since: same.map_or(now, |same| same.since),
            generation,
        }
    });
    dated.collect()
}

fn associated(claim: &Claim) -> Judgement {
    let kind = ClaimConditionKind::Associated;
    match claim.state {
        ClaimState::Pending if claim.spec.paused => {
            Judgement::new(kind, false, PendingReason::Paused.as_str())
                .saying(PendingReason::Paused.text())
        }
        ClaimState::Pending => {
            let (reason, fit) = (claim.queue.reason, claim.queue.matching);
            let mut text = reason.text().to_owned();
            if fit > 0 {
                text.push_str(&format!(" ({fit} fit)"));
            }
            Judgement::new(kind, false, reason.as_str()).saying(text)
        }
        ClaimState::Lost => {
            Judgement::new(kind, false, "HostLost").saying("its host was taken away")
        }
        ClaimState::Gone => Judgement::new(kind, false, "Released"),
        _ => Judgement::new(kind, true, "HostBound"),
    }
}

fn policy_satisfied(claim: &Claim, host: Option<&HostFacts>) -> Judgement {
    let kind = ClaimConditionKind::PolicySatisfied;
    if host.is_some_and(|host| host.is_revoked) {
        let text = "the pool does not admit the project any more";
        return Judgement::new(kind, false, "Revoked").saying(text);
    }
    let is_refused =
        claim.state == ClaimState::Pending && claim.queue.reason == PendingReason::NoPolicy;
    match is_refused {
        true => Judgement::new(kind, false, "NoPolicy").saying(PendingReason::NoPolicy.text()),
        false => Judgement::new(kind, true, "Admitted"),
    }
}

/// `true` if the host is to be on.
pub(super) fn wants_power(claim: &Claim, is_host_held: bool) -> bool {
    claim.spec.powered_on && claim.holds.is_empty() && !is_host_held
}

fn synchronized(claim: &Claim, host: Option<&HostFacts>) -> Judgement {
    let kind = ClaimConditionKind::Synchronized;
    let Some(host) = host.filter(|_| claim.state.has_host()) else {
        return Judgement::new(kind, false, "NoHost");
    };
    if claim.spec.paused {
        return Judgement::new(kind, false, "Paused");
    }
    if let Some(trouble) = &claim.trouble {
        return Judgement::new(kind, false, &trouble.reason).saying(trouble.message.as_str());
    }
    // The cause is the operator's: it may name the BMC.
    if claim.power.error.is_some() {
        let text = "the host did not carry out the power order";
        return Judgement::new(kind, false, "PowerFailed").saying(text);
    }
    let is_active = claim.state == ClaimState::Active;
    let is_off = !wants_power(claim, host.is_held);
    if is_active && (claim.power.is_off != is_off || claim.power.order.is_some()) {
        return Judgement::new(kind, false, "PowerPending");
    }
    Judgement::new(kind, true, "Synchronized")
}

fn provisioned(claim: &Claim, host: Option<&HostFacts>) -> Judgement {
    let kind = ClaimConditionKind::Provisioned;
    let has_failed = host.is_some_and(|host| host.sight == HostSight::InstallFailed);
    match claim.state {
        ClaimState::Active => Judgement::new(kind, true, "Installed"),
        ClaimState::Provisioning if has_failed => {
            let why = host.map(|host| host.failure.clone()).unwrap_or_default();
            Judgement::new(kind, false, "InstallFailed").saying(why)
        }
        ClaimState::Provisioning => Judgement::new(kind, false, "Installing"),
        ClaimState::Deprovisioning => Judgement::new(kind, false, "Wiping"),
        ClaimState::Releasing => Judgement::new(kind, false, "Releasing"),
        ClaimState::Bound if claim.spec.image.is_none() => Judgement::new(kind, false, "NoImage"),
        ClaimState::Bound => match &claim.trouble {
            Some(trouble) => {
                Judgement::new(kind, false, &trouble.reason).saying(trouble.message.as_str())
            }
            None => Judgement::new(kind, false, "Waiting"),
        },
        ClaimState::Pending | ClaimState::Lost | ClaimState::Gone => {
            Judgement::new(kind, false, "NoHost")
        }
    }
}
