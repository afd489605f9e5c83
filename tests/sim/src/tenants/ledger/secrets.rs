//! A project never learns from its claim which machine it has, or had.

use control_state::Claim;

use super::applied::{Applied, Changed};

pub(super) fn check(applied: &Applied<'_>) -> Result<(), String> {
    applied.claims().try_for_each(|claim| check_claim(&claim))
}

fn check_claim(claim: &Changed<'_, Claim>) -> Result<(), String> {
    let Some(after) = claim.after else {
        return Ok(());
    };
    let shown = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        after.notes, after.trouble, after.conditions, after.reboots, after.power.error
    );
    let bindings = [claim.before, claim.after].into_iter().flatten();
    let machines = bindings.filter_map(|claim| Some(claim.binding.as_ref()?.machine));
    for machine in machines {
        if shown.contains(&machine.to_string()) {
            return Err(format!(
                "claim {} tells of machine {machine}: {shown}",
                after.id
            ));
        }
    }
    Ok(())
}
