//! Quotas.

use std::collections::{BTreeMap, HashMap};

use control_state::query::counts;
use control_state::{self as state, Limits, QuotaSubject, Tables};
use proto_public::metalmesh::admin::v1::{Amounts, Quota, quota};
use proto_types::SizeId;
use tonic::Status;

use super::{parse, time};

/// A quota for the wire, with its usage.
pub fn quota(tables: &Tables, quota: &state::Quota) -> Quota {
    let limits = &quota.limits;
    let used = counts(tables, quota);
    let sizes = |of: &BTreeMap<SizeId, u32>| -> HashMap<String, u32> {
        let all = of.iter();
        all.map(|(size, number)| (size.to_string(), *number))
            .collect()
    };
    Quota {
        subject: Some(match &quota.subject {
            QuotaSubject::Tenant(login) => quota::Subject::Tenant(login.to_string()),
            QuotaSubject::Project(id) => quota::Subject::Project(id.to_string()),
        }),
        limits: Some(Amounts {
            machines: limits.machines,
            machines_of_size: sizes(&limits.machines_of_size),
            networks: limits.networks,
            ips: limits.ips,
        }),
        used: Some(Amounts {
            machines: limits.machines.map(|_| used.machines),
            machines_of_size: sizes(&used.machines_of_size),
            networks: limits.networks.map(|_| used.networks),
            ips: limits.ips.map(|_| used.ips),
        }),
        updated_at: time(quota.updated_at),
    }
}

/// Bounds from the wire.
///
/// # Errors
/// `invalid_argument` for a malformed size id.
pub fn from_amounts(amounts: Amounts) -> Result<Limits, Status> {
    let sizes = amounts.machines_of_size.into_iter();
    let sizes = sizes.map(|(size, number)| {
        let size = parse::<SizeId>("limits.machines_of_size", &size)?;
        Ok((size, number))
    });
    Ok(Limits {
        machines: amounts.machines,
        machines_of_size: sizes.collect::<Result<_, Status>>()?,
        networks: amounts.networks,
        ips: amounts.ips,
    })
}
