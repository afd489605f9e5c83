//! Orders of the test over a serial port: a line for each, and a line as its answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tests_lab::wait::stretch_now;

use super::cables::SWITCHES;
use super::plant::{Cut, Plant};

/// Longest time that an answer about an armed cut is waited for.
const LOOK: Duration = Duration::from_millis(500);

/// Carries out the test's orders, on a thread that ends with the guest.
pub(super) fn serve(plant: Arc<Plant>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        if let Err(error) = run(&plant)
            && !plant.has_ended()
        {
            println!("fabric | power: {error:#}");
        }
    })
}

fn run(plant: &Arc<Plant>) -> Result<()> {
    plant.plug_site()?;
    let stream = UnixStream::connect(plant.power_socket())?;
    let mut answers = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let order = line?;
        let answer = carry_out(plant, &order);
        let answer = answer.unwrap_or_else(|error| format!("error: {error:#}"));
        writeln!(answers, "{answer}")?;
    }
    Ok(())
}

fn carry_out(plant: &Arc<Plant>, order: &str) -> Result<String> {
    let words: Vec<&str> = order.split_whitespace().collect();
    match words[..] {
        ["on", name] => plant.power_on(switch(name)?)?,
        ["off", name] => plant.power_off(switch(name)?),
        ["reset", name] => plant.reset(switch(name)?)?,
        // The power goes with the event of a port.
        ["arm", name, port, events] => plant.arm(Cut {
            switch: switch(name)?,
            port: port.to_owned(),
            events: events.parse()?,
        }),
        ["cut?"] => return Ok(word(plant.wait_for_cut(LOOK))),
        // The factor by which this machine's load stretches times.
        ["stretch?"] => return Ok(format!("{:.2}", stretch_now())),
        ["disarm"] => return Ok(word(plant.disarm())),
        _ => bail!("unknown order {order:?}"),
    }
    Ok("ok".into())
}

fn word(is_cut: bool) -> String {
    if is_cut { "yes" } else { "no" }.into()
}

fn switch(name: &str) -> Result<usize> {
    let mut switches = SWITCHES.iter();
    let found = switches.position(|switch| switch.name == name);
    found.with_context(|| format!("no switch {name:?}"))
}
