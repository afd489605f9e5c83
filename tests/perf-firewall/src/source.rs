//! From the agent's source to the kernel: the program runs, one rule of its file changes.
//!
//! Control's part of the way, from the call to the agent's source, is not in these figures.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agents_firewall::compile::compile;
use agents_firewall::netlink::Kernel;
use agents_firewall::plan::plan;
use anyhow::{Context as _, Result, bail, ensure};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::apply::{clear, path};
use crate::program::ms;
use crate::{Bench, workload};

/// Longest wait for a change to reach the kernel.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two looks at the kernel's generation.
const POLL: Duration = Duration::from_millis(1);
/// Time of the agent without a change.
const IDLE: Duration = Duration::from_secs(10);

/// The agent, which ends with the value.
#[derive(Debug)]
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Agent {
    /// Starts the program. The kernel kills it if the bench ends before.
    fn start(bench: &Bench, folder: &Path) -> Result<Self> {
        let [config, state, rules, log] =
            ["config.yaml", "state", "rules.nft", "log"].map(|name| folder.join(name));
        let program = path(&bench.args.firewall)?;
        let log = std::fs::File::create(log)?;
        let run = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--",
            program,
            "run",
            "--config",
            path(&config)?,
            "--state-dir",
            path(&state)?,
            "--rules-file",
            path(&rules)?,
        ];
        let mut command: Command = bench.place.router.command(&run);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        Ok(Self(command.spawn().context("cannot start the agent")?))
    }

    /// Processor time so far, milliseconds.
    fn cpu_ms(&self) -> Result<f64> {
        let pid = Pid::from_raw(i32::try_from(self.0.id())?);
        let clock = clock_getcpuclockid(pid)?;
        Ok(ms(Duration::from(clock_gettime(clock)?)))
    }

    /// Resident memory, MiB.
    fn rss_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.context("no VmRSS")?.parse::<f64>()? / 1024.0)
    }
}

/// Changes one rule in the file again and again.
pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    clear(bench)?;
    let folder = tempfile::tempdir()?;
    let permits = bench.args.permits;
    let texts = (0..2).map(|version| workload::text(permits, permits / 2, version));
    let texts = texts.collect::<Result<Vec<String>>>()?;
    write(folder.path(), &texts[0])?;
    let agent = Agent::start(bench, folder.path())?;
    await_table(bench, &texts[0])?;
    let changes = bench.args.rounds * 5;
    bench.progress(&format!(
        "{changes} changes of one rule in the agent's file"
    ));
    for text in texts.iter().cycle().skip(1).take(usize::try_from(changes)?) {
        let before = agent.cpu_ms()?;
        let waited = bench.place.router.inside(|| {
            let kernel = Kernel::open()?;
            let generation = kernel.generation()?;
            write(folder.path(), text)?;
            let began = Instant::now();
            while kernel.generation()? == generation {
                ensure!(
                    began.elapsed() < CHANGE_TIMEOUT,
                    "the change does not reach the kernel"
                );
                std::thread::sleep(POLL);
            }
            Ok(began.elapsed())
        })?;
        bench.report.add("source_p50_ms", ms(waited));
        await_table(bench, text)?;
        // The work after the change counts too, such as writing the text for others.
        std::thread::sleep(Duration::from_millis(300));
        bench.report.add("source_cpu_ms", agent.cpu_ms()? - before);
    }
    bench.progress("the agent without a change");
    let before = agent.cpu_ms()?;
    std::thread::sleep(IDLE);
    let percent = (agent.cpu_ms()? - before) / ms(IDLE) * 100.0;
    bench.report.add("idle_cpu_percent", percent);
    bench.report.add("rss_mib", agent.rss_mib()?);
    drop(agent);
    clear(bench)
}

/// Replaces the agent's file.
fn write(folder: &Path, text: &str) -> Result<()> {
    let next = folder.join("next");
    std::fs::write(&next, text)?;
    Ok(std::fs::rename(next, folder.join("config.yaml"))?)
}

/// Waits until the kernel has exactly the rules of a configuration.
fn await_table(bench: &Bench, text: &str) -> Result<()> {
    let table = compile(&workload::rules(text)?);
    let began = Instant::now();
    bench.place.router.inside(|| {
        while began.elapsed() < CHANGE_TIMEOUT {
            if plan(&Kernel::open()?.read()?, &table).is_empty() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("the agent does not apply its file")
    })
}
