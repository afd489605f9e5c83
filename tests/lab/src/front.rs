//! What `./dev lab …` does.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::artefacts::{Artefacts, Options};
use crate::datacentre::DataCentre;
use crate::netns::Namespace;
use crate::scenario::{self, drills};
use crate::state::Record;
use crate::timeline::{Timeline, say};
use crate::wait::{Interrupted, catch_signals};

/// Builds a lab and works in it. `program` is this program's file, which the lab's helper processes
/// run. The last line printed is `LAB PASS` or `LAB FAIL …`.
///
/// # Errors
/// A step failed; it has been told.
pub fn run(program: &Path, options: &Options, artefacts: &Artefacts) -> Result<()> {
    catch_signals()?;
    clear_orphans()?;
    let record = Record::create(program)?;
    say(&format!(
        "lab {} in {}",
        record.state().id,
        record.dir().display()
    ));
    let time = Arc::new(Timeline::default());
    let result = work(&record, options, artefacts, &time);
    match result {
        Ok(()) if options.up => {
            record.update(|s| s.owner = None)?;
            print_usage(&record);
            say("LAB UP");
            Ok(())
        }
        Ok(()) => {
            record.take_down()?;
            record.erase()?;
            say("LAB PASS");
            Ok(())
        }
        Err(failure) => fail(&record, options.keep, failure),
    }
}

/// Why a lab failed, and where.
struct Failure {
    step: String,
    log: PathBuf,
    error: anyhow::Error,
}

fn work(
    record: &Record,
    options: &Options,
    artefacts: &Artefacts,
    time: &Arc<Timeline>,
) -> std::result::Result<(), Failure> {
    let result = DataCentre::build(record, options, artefacts, Arc::clone(time)).and_then(|lab| {
        let result = scenario(&lab, options);
        account(&lab);
        result
    });
    time.table();
    result.map_err(|error| failure(record, time, error))
}

fn failure(record: &Record, time: &Timeline, error: anyhow::Error) -> Failure {
    let (step, log) = time
        .failed_step()
        .unwrap_or_else(|| ("build".into(), record.dir().join("log")));
    Failure { step, log, error }
}

/// Gives a lab without anything in it to another builder, and takes it away afterwards; with `keep` it
/// stays when the work fails. The last line printed is as that of [`run`].
///
/// # Errors
/// The work failed; it has been told.
pub fn in_lab(
    program: &Path,
    keep: bool,
    work: impl FnOnce(&Record, &Arc<Timeline>) -> Result<()>,
) -> Result<()> {
    catch_signals()?;
    clear_orphans()?;
    let record = Record::create(program)?;
    let (id, dir) = (record.state().id, record.dir().display());
    say(&format!("lab {id} in {dir}"));
    let time = Arc::new(Timeline::default());
    let result = work(&record, &time);
    time.table();
    match result {
        Ok(()) => {
            record.take_down()?;
            record.erase()?;
            say("LAB PASS");
            Ok(())
        }
        Err(error) => {
            let failure = failure(&record, &time, error);
            fail(&record, keep, failure)
        }
    }
}

fn scenario(lab: &DataCentre, options: &Options) -> Result<()> {
    match &options.drill {
        Some(name) => drills::run(lab, name),
        None if options.up => scenario::prepare(lab).map(|_| ()),
        None => scenario::main_job(lab),
    }
}

/// What the machines have cost.
fn account(lab: &DataCentre) {
    for machine in &lab.machines {
        if let Ok(status) = machine.status() {
            let (name, cpu) = (&machine.name, status.cpu_s);
            say(&format!(
                "  {name}: {cpu:.0} CPU seconds, switched on {} times",
                status.powered_on
            ));
        }
    }
}

fn fail(record: &Record, keep: bool, failure: Failure) -> Result<()> {
    let Failure { step, log, error } = failure;
    if keep {
        record.update(|s| s.owner = None)?;
        say("kept: ./dev lab status, ./dev lab shell, ./dev lab down");
    } else {
        record.take_down()?;
        if error.is::<Interrupted>() {
            record.erase()?;
        } else {
            record.keep_logs_only()?;
        }
    }
    if !keep && error.is::<Interrupted>() {
        say(&format!("LAB FAIL step={step:?} reason=\"interrupted\""));
        bail!("interrupted; nothing is left of the lab");
    }
    let reason = format!("{error:#}").replace('\n', " ");
    say(&format!(
        "LAB FAIL step={step:?} reason={reason:?} log={}",
        log.display()
    ));
    bail!("the lab failed")
}

/// Takes away what killed labs have left.
fn clear_orphans() -> Result<()> {
    for record in Record::all()?.iter().filter(|r| r.orphaned()) {
        say(&format!(
            "taking away lab {}, whose process is gone",
            record.state().id
        ));
        record.take_down()?;
        record.erase()?;
    }
    Ok(())
}

/// Takes the labs on this machine away, but for those that another process works in.
///
/// # Errors
/// Something is left.
pub fn down() -> Result<()> {
    catch_signals()?;
    for record in Record::all()? {
        let state = record.state();
        if let Some(owner) = state.owner.filter(|_| !record.orphaned()) {
            say(&format!(
                "lab {} belongs to process {}, which works in it",
                state.id, owner.pid
            ));
            continue;
        }
        record.take_down()?;
        record.erase()?;
        say(&format!("lab {} is gone", state.id));
    }
    Ok(())
}

/// What runs.
///
/// # Errors
/// The labs cannot be read.
pub fn status() -> Result<()> {
    let labs = Record::all()?;
    if labs.is_empty() {
        say("no lab is up; ./dev lab up builds one");
    }
    for record in labs {
        let state = record.state();
        say(&format!("lab {} in {}", state.id, record.dir().display()));
        say(&format!(
            "  {} machines, {}",
            state.machines, state.accelerator
        ));
        for process in &state.processes {
            let mark = if process.alive() { "runs" } else { "ENDED" };
            say(&format!(
                "  {:<12} {mark}, pid {}",
                process.name, process.pid
            ));
        }
    }
    Ok(())
}

/// Prints what a shell needs to use the lab, for `eval`.
///
/// # Errors
/// No lab is up.
pub fn environment() -> Result<()> {
    for (name, value) in current()?.state().environment {
        say(&format!("export {name}='{value}'"));
    }
    say("export PATH=\"$METALMESH_BIN:$PATH\"");
    say("# then: ip netns exec $METALMESH_NETNS metalmesh machine ls");
    Ok(())
}

/// Becomes a shell in the place of one of the lab's people.
///
/// # Errors
/// No lab is up, or nobody of that name is in it.
pub fn shell(who: &str) -> Result<()> {
    let record = current()?;
    let place = match who {
        "admin" => "admin",
        "tenant-a" | "tenant-b" => "exit",
        _ => bail!("nobody is called {who:?}: admin, tenant-a or tenant-b"),
    };
    let state = record.state();
    let path = std::env::var("PATH").unwrap_or_default();
    let programs = state
        .environment
        .iter()
        .find(|(name, _)| name == "METALMESH_BIN");
    let programs = programs
        .map(|(_, value)| value.as_str())
        .unwrap_or_default();
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/bash".into());
    let mut command = Namespace::existing(&record, place).command(shell);
    command
        .stdin(std::process::Stdio::inherit())
        .env("PATH", format!("{programs}:{path}"))
        .env(
            "METALMESH_CONFIG",
            record.dir().join(who).join("config.yaml"),
        )
        .env("PS1", format!("lab-{} {who}$ ", state.id));
    say(&format!(
        "{who} of lab {}; try: metalmesh machine ls",
        state.id
    ));
    Err(command.exec()).context("no shell")
}

fn current() -> Result<Record> {
    let labs = Record::all()?;
    labs.into_iter()
        .next_back()
        .context("no lab is up; ./dev lab up builds one")
}

fn print_usage(record: &Record) {
    say(&format!(
        "\nThe lab stays up. Its logs are in {}/log.\n\
         ./dev lab shell            a shell as the admin\n\
         ./dev lab shell tenant-a   a shell as a tenant\n\
         ./dev lab env              the environment to use it, for eval\n\
         ./dev lab status           what runs\n\
         ./dev lab down             take everything away\n",
        record.dir().display()
    ));
}

/// Names of the fault drills.
pub fn list_drills() {
    for drill in drills::DRILLS {
        say(&format!("{:<18} {}", drill.name, drill.about));
    }
}
