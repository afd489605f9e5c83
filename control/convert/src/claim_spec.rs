//! Intents of claims, in both directions.

use std::collections::HashMap;

use control_gate::refusal::invalid;
use control_state::{
    ClaimSelector, ClaimSpec, ClaimToleration, DomainWish, Labels, LostRule, PreferredTerm,
    RebootMode, ReuseWish, SelectorOp, SelectorTerm, WantedNetwork, WipeLevel,
};
use proto_public::metalmesh::tenant::v1 as tenant;
use tonic::Status;

use super::ssh_key::from_keys;
use super::{duration, parse, parse_all, parse_opt};

/// Labels as the map of a message.
pub(crate) fn map(labels: &Labels) -> HashMap<String, String> {
    let pairs = labels.iter();
    pairs
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// An intent for the wire, without the user data.
pub fn spec(spec: &ClaimSpec) -> tenant::ClaimSpec {
    tenant::ClaimSpec {
        pools: spec.pools.iter().map(ToString::to_string).collect(),
        selector: Some(selector(&spec.selector)),
        preferred: spec
            .preferred
            .iter()
            .map(|term| tenant::ClaimPreference {
                weight: term.weight,
                selector: Some(selector(&term.selector)),
            })
            .collect(),
        tolerations: spec
            .tolerations
            .iter()
            .map(|tolerated| tenant::ClaimToleration {
                key: tolerated.key.clone(),
                value: tolerated.value.clone(),
            })
            .collect(),
        failure_domain: spec.domain.as_ref().map(|wish| tenant::ClaimFailureDomain {
            name: wish.name.clone(),
            required: wish.required,
        }),
        priority: spec.priority,
        reuse: spec.reuse.as_ref().map(|reuse| tenant::ClaimReuse {
            key: reuse.key.clone(),
            required: reuse.required,
            keep: (reuse.keep_ms > 0).then(|| duration(reuse.keep_ms)),
            wipe: reuse
                .wipe
                .map(WipeLevel::as_str)
                .unwrap_or_default()
                .to_owned(),
        }),
        spread: spec.spread.clone(),
        rebind: spec.on_lost == LostRule::Rebind,
        paused: spec.paused,
        powered_on: spec.powered_on,
        image: spec.image.as_ref().map(ToString::to_string),
        filesystem_layout: spec.layout.as_ref().map(ToString::to_string),
        hostname: spec.hostname.clone(),
        networks: spec
            .networks
            .iter()
            .map(|wanted| tenant::ClaimNetwork {
                network: wanted.network.to_string(),
                ips: wanted.ips.iter().map(ToString::to_string).collect(),
            })
            .collect(),
        ssh_public_keys: spec.ssh_public_keys.clone(),
        user_data: None,
    }
}

fn selector(selector: &ClaimSelector) -> tenant::ClaimSelector {
    let terms = selector.terms.iter().map(|term| tenant::ClaimSelectorTerm {
        key: term.key.clone(),
        operator: operator(term.op).to_owned(),
        values: term.values.iter().cloned().collect(),
    });
    tenant::ClaimSelector {
        match_labels: map(&selector.labels),
        match_expressions: terms.collect(),
    }
}

const fn operator(op: SelectorOp) -> &'static str {
    match op {
        SelectorOp::In => "In",
        SelectorOp::NotIn => "NotIn",
        SelectorOp::Exists => "Exists",
        SelectorOp::DoesNotExist => "DoesNotExist",
    }
}

/// An intent from the wire. `known` is the user data on record, which a request without any keeps.
///
/// # Errors
/// `invalid_argument` with the field.
pub fn from_spec(spec: Option<tenant::ClaimSpec>, known: &str) -> Result<ClaimSpec, Status> {
    let spec = spec.unwrap_or_default();
    let preferred = spec.preferred.into_iter().map(|term| {
        Ok(PreferredTerm {
            weight: term.weight,
            selector: from_selector("spec.preferred.selector", term.selector)?,
        })
    });
    let networks = spec.networks.iter().map(|wanted| {
        Ok(WantedNetwork {
            network: parse("spec.networks.network", &wanted.network)?,
            ips: parse_all("spec.networks.ips", &wanted.ips)?,
        })
    });
    let tolerations = spec.tolerations.into_iter();
    Ok(ClaimSpec {
        pools: parse_all("spec.pools", &spec.pools)?,
        selector: from_selector("spec.selector", spec.selector)?,
        preferred: preferred.collect::<Result<_, Status>>()?,
        tolerations: tolerations
            .map(|tolerated| ClaimToleration {
                key: tolerated.key,
                value: tolerated.value,
            })
            .collect(),
        domain: spec.failure_domain.map(|wish| DomainWish {
            name: wish.name,
            required: wish.required,
        }),
        priority: spec.priority,
        reuse: spec.reuse.map(from_reuse).transpose()?,
        spread: spec.spread,
        on_lost: match spec.rebind {
            true => LostRule::Rebind,
            false => LostRule::Stay,
        },
        paused: spec.paused,
        powered_on: spec.powered_on,
        image: parse_opt("spec.image", spec.image.as_ref())?,
        layout: parse_opt("spec.filesystem_layout", spec.filesystem_layout.as_ref())?,
        hostname: spec.hostname,
        networks: networks.collect::<Result<_, Status>>()?,
        ssh_public_keys: from_keys(spec.ssh_public_keys)?,
        userdata: spec.user_data.unwrap_or_else(|| known.to_owned()),
    })
}

fn from_reuse(reuse: tenant::ClaimReuse) -> Result<ReuseWish, Status> {
    Ok(ReuseWish {
        key: reuse.key,
        required: reuse.required,
        keep_ms: from_duration("spec.reuse.keep", reuse.keep.as_ref())?,
        wipe: from_wipe_level("spec.reuse.wipe", &reuse.wipe)?,
    })
}

/// The strength of a wipe from the wire; `None` for an empty text.
///
/// # Errors
/// `invalid_argument` with the field for another text.
pub(crate) fn from_wipe_level(field: &str, text: &str) -> Result<Option<WipeLevel>, Status> {
    match text {
        "" => Ok(None),
        "metadata" => Ok(Some(WipeLevel::Metadata)),
        "erase" => Ok(Some(WipeLevel::Erase)),
        "sanitize" => Ok(Some(WipeLevel::Sanitize)),
        other => {
            let rule = format!("{other:?} is none of metadata, erase and sanitize");
            Err(invalid(field, rule))
        }
    }
}

/// Milliseconds of a duration; 0 for none.
///
/// # Errors
/// `invalid_argument` for a negative one.
pub fn from_duration(field: &str, duration: Option<&prost_types::Duration>) -> Result<u64, Status> {
    let Some(duration) = duration else {
        return Ok(0);
    };
    let negative = |_| invalid(field, "must not be negative");
    let seconds = u64::try_from(duration.seconds).map_err(negative)?;
    let ms = u64::try_from(duration.nanos / 1_000_000).map_err(negative)?;
    Ok(seconds.saturating_mul(1000).saturating_add(ms))
}

/// Labels from the map of a message.
pub fn from_map(labels: HashMap<String, String>) -> Labels {
    labels.into_iter().collect()
}

fn from_selector(
    field: &str,
    selector: Option<tenant::ClaimSelector>,
) -> Result<ClaimSelector, Status> {
    let selector = selector.unwrap_or_default();
    let terms = selector.match_expressions.into_iter().map(|term| {
        Ok(SelectorTerm {
            op: from_operator(field, &term.operator)?,
            key: term.key,
            values: term.values.into_iter().collect(),
        })
    });
    Ok(ClaimSelector {
        labels: from_map(selector.match_labels),
        terms: terms.collect::<Result<_, Status>>()?,
    })
}

fn from_operator(field: &str, text: &str) -> Result<SelectorOp, Status> {
    match text {
        "In" => Ok(SelectorOp::In),
        "NotIn" => Ok(SelectorOp::NotIn),
        "Exists" => Ok(SelectorOp::Exists),
        "DoesNotExist" => Ok(SelectorOp::DoesNotExist),
        other => {
            let rule = format!("has operator {other:?}: use In, NotIn, Exists or DoesNotExist");
            Err(invalid(field, rule))
        }
    }
}

/// The way of a reboot from the wire.
///
/// # Errors
/// `invalid_argument` for another text.
pub fn from_reboot_mode(text: &str) -> Result<RebootMode, Status> {
    match text {
        "" | "soft" => Ok(RebootMode::Soft),
        "hard" => Ok(RebootMode::Hard),
        other => Err(invalid(
            "mode",
            format!("{other:?} is neither soft nor hard"),
        )),
    }
}
