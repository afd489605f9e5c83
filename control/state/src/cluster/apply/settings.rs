//! Settings of the cluster: retention of the audit trail, and budgets.

use proto_errors::Error;

use crate::cluster::command::SetSettings;
use crate::cluster::entity::{AuditRetention, Budgets, Settings};
use crate::cluster::read::settings;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Lowest value of `audit.records_max`, records; a lower one is refused.
const RECORDS_MIN: u32 = 1_000;
/// Highest value of `audit.records_max` and `audit.unread_max`, records; a higher one is refused.
/// Records are in memory, with up to 16 KiB each.
const RECORDS_MAX: u32 = 1_000_000;
/// Lowest value of `audit.age_max`, milliseconds: an hour. A lower one is refused.
const AGE_MIN_MS: u64 = 3_600_000;
/// Highest value of a budget, objects; a higher one is refused.
const BUDGET_MAX: u32 = 1_000_000;

/// Sets the given settings; the others stay.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetSettings) -> ApplyResult {
    let before = settings(tx.tables());
    let audit = op.audit.unwrap_or(before.audit);
    let budgets = op.budgets.unwrap_or(before.budgets);
    check_retention(&audit)?;
    check_budgets(&budgets)?;
    let settings = Settings {
        audit,
        budgets,
        updated_at: tx.now,
        ..Settings::default()
    };
    Ok(Reply::Settings(tx.save(settings)))
}

fn check_retention(audit: &AuditRetention) -> CheckResult {
    if !(RECORDS_MIN..=RECORDS_MAX).contains(&audit.records_max) {
        let rule = format!("must be in {RECORDS_MIN}..={RECORDS_MAX}");
        return Err(Error::invalid("audit.records_max", rule));
    }
    if !(audit.records_max..=RECORDS_MAX).contains(&audit.unread_max) {
        let rule = format!("must be at least records_max and at most {RECORDS_MAX}");
        return Err(Error::invalid("audit.unread_max", rule));
    }
    if audit.age_max_ms.is_some_and(|age_ms| age_ms < AGE_MIN_MS) {
        return Err(Error::invalid("audit.age_max", "must be an hour at least"));
    }
    Ok(())
}

fn check_budgets(budgets: &Budgets) -> CheckResult {
    for (field, budget) in [
        ("budgets.tokens_per_user", budgets.tokens_per_user),
        ("budgets.tenants_per_user", budgets.tenants_per_user),
        ("budgets.projects_per_tenant", budgets.projects_per_tenant),
        ("budgets.invites_per_user", budgets.invites_per_user),
        ("budgets.ips_per_project", budgets.ips_per_project),
        ("budgets.networks_per_project", budgets.networks_per_project),
    ] {
        if !(1..=BUDGET_MAX).contains(&budget) {
            let rule = format!("must be in 1..={BUDGET_MAX}");
            return Err(Error::invalid(field, rule));
        }
    }
    Ok(())
}
