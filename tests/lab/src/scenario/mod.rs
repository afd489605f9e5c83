//! What a lab does: the main job from an empty cluster to freed machines, and fault drills.

pub mod drills;
mod events;
mod life;
mod setup;

use anyhow::Result;

use crate::datacentre::DataCentre;

pub use events::Watcher;
pub use setup::Site;

/// The main job, end to end.
///
/// # Errors
/// The step that failed.
pub fn main_job(lab: &DataCentre) -> Result<()> {
    let site = prepare(lab)?;
    use_machines(lab, &site)
}

/// In a site with catalogue and agents: a tenant gets the machine, and it phones home.
///
/// # Errors
/// The step that failed.
pub fn phone_home(lab: &DataCentre) -> Result<()> {
    let site = setup::tenants(lab)?;
    life::machines_wait(lab)?;
    life::allocate(lab, &site).map(|_| ())
}

/// The tenant's part: from machines that wait to machines that wait again.
fn use_machines(lab: &DataCentre, site: &Site) -> Result<()> {
    let machines = life::allocate(lab, site)?;
    life::only_the_tenant_sees(lab, &machines)?;
    each(&machines, |machine| life::reach_by_ssh(lab, site, machine))?;
    life::free(lab, site, &machines)
}

/// The same with every machine, at the same time: what machines are waited for would add up.
fn each<T: Sync>(machines: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let started: Vec<_> = machines
            .iter()
            .map(|machine| scope.spawn(move || work(machine)))
            .collect();
        started.into_iter().try_for_each(|one| {
            one.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// Everything up to machines that wait, for `lab up`.
///
/// # Errors
/// The step that failed.
pub fn prepare(lab: &DataCentre) -> Result<Site> {
    let site = setup::run(lab)?;
    life::machines_wait(lab)?;
    Ok(site)
}
