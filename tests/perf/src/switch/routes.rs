//! FRR's part of one port's change on a switch with 500 VRFs: real zebra and bgpd in a network
//! namespace, without devices of VRFs, which the host's kernel does not have. FRR takes and shows
//! the configuration all the same.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use agents_core::config::{BgpConfig, Config};
use agents_core::intent;
use agents_nos::frr::{Frr, FrrConfig, Observed, Routing, Vtysh, parse};
use agents_nos::model::PortName;
use anyhow::{Context as _, Result, ensure};
use tokio::time::sleep;

use super::Bench;
use super::orders::Orders;
use crate::cluster::POLL;
use crate::process::Process;
use crate::procfs;
use crate::sample::Latencies;

const DAEMONS: [&str; 2] = ["/usr/lib/frr/zebra", "/usr/lib/frr/bgpd"];
/// Time in which both daemons have to answer.
const START_MAX: Duration = Duration::from_secs(60);
/// Changes of one port.
const CHANGES: u32 = 10;
/// Times that the configuration is parsed.
const PARSES: usize = 10;

/// Measures, or says why it cannot.
pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let is_root = nix::unistd::geteuid().is_root();
    let mut programs = DAEMONS.iter().chain(["/usr/bin/vtysh"].iter());
    if !is_root || !programs.all(|program| Path::new(program).exists()) {
        bench.progress("FRR is left out: it needs root and Debian's frr");
        return Ok(());
    }
    let daemons = Daemons::start(&bench.dir).await?;
    let mut orders = Orders::new();
    let began = Instant::now();
    let observed = daemons.frr.observe().await?;
    daemons.frr.apply(&observed, &routes(&orders)?).await?;
    let took = began.elapsed().as_secs_f64();
    bench.progress(&format!("FRR has all VRFs after {took:.1} s"));
    shown(bench, &daemons).await?;
    changes(bench, &daemons, &mut orders).await
}

/// Shows and parses the whole configuration.
#[expect(clippy::cast_precision_loss, reason = "for people to read")]
async fn shown(bench: &mut Bench, daemons: &Daemons) -> Result<()> {
    let mut shows = Latencies::default();
    for _ in 0..PARSES {
        let began = Instant::now();
        daemons.frr.observe().await?;
        shows.add(began.elapsed());
    }
    let text = daemons.running_config()?;
    let mut parses = Latencies::default();
    for _ in 0..PARSES {
        let began = Instant::now();
        let routing = Routing::from_frr(&parse(&text).config);
        parses.add(began.elapsed());
        ensure!(routing.bgp.is_some(), "FRR shows no BGP");
    }
    let (show, parse) = (shows.quantile_us(0.5) / 1e3, parses.quantile_us(0.5) / 1e3);
    bench.progress(&format!(
        "FRR shows {} KiB, observed in {show:.0} ms, of which parsing {parse:.1} ms",
        text.len() / 1024
    ));
    bench
        .report
        .add("frr_bytes_kib", text.len() as f64 / 1024.0);
    bench.report.add("frr_show_p50_ms", show);
    bench.report.add("frr_parse_p50_ms", parse);
    Ok(())
}

/// Moves ports, as a pass of the Linux back-end does: the session leaves and the filters change,
/// the port moves in the kernel, the session enters. FRR is read first, and after each change.
async fn changes(bench: &mut Bench, daemons: &Daemons, orders: &mut Orders) -> Result<()> {
    let mut took = Latencies::default();
    let mut cpu = 0.0;
    for port in 0..CHANGES {
        orders.move_port(port as usize);
        let rounds = [without_session(orders, port)?, routes(orders)?];
        let (began, before) = (Instant::now(), own_cpu_ms()?);
        pass(daemons, &rounds).await?;
        took.add(began.elapsed());
        cpu += own_cpu_ms()? - before;
    }
    let cpu = cpu / f64::from(CHANGES);
    let p50 = took.quantile_us(0.5) / 1e3;
    bench.progress(&format!(
        "FRR: one port in {p50:.0} ms, the agent's CPU {cpu:.0} ms"
    ));
    bench.report.add("frr_port_p50_ms", p50);
    bench.report.add("frr_port_cpu_ms", cpu);
    Ok(())
}

/// Does with FRR as a pass does. The port leaves and enters between the two changes, which are of
/// the kernel and read nothing of FRR.
async fn pass(daemons: &Daemons, [left, entered]: &[FrrConfig; 2]) -> Result<()> {
    let mut observed = daemons.frr.observe().await?;
    check(&observed)?;
    for desired in [left, entered] {
        observed = daemons.frr.apply(&observed, desired).await?;
        check(&observed)?;
    }
    Ok(())
}

/// Reads FRR's configuration into the model, as the back-end does with each that it reads.
fn check(observed: &Observed) -> Result<()> {
    let routing = Routing::from_frr(&observed.config);
    ensure!(routing.bgp.is_some(), "FRR shows no BGP");
    Ok(())
}

/// CPU time of this process so far, milliseconds; FRR and its shell are others.
#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn own_cpu_ms() -> Result<f64> {
    Ok(procfs::cpu_us(std::process::id())? as f64 / 1e3)
}

/// FRR's part of the orders.
fn routes(orders: &Orders) -> Result<FrrConfig> {
    let (model, problems) = intent(&orders.desired(), &config());
    ensure!(problems.is_empty(), "{problems:?}");
    Ok(Routing::of(&model).to_frr()?)
}

/// The same before the session of a port enters.
fn without_session(orders: &Orders, port: u32) -> Result<FrrConfig> {
    let (mut model, _) = intent(&orders.desired(), &config());
    let port = PortName::new(&format!("swp{port}"))?;
    let bgp = model.bgp.as_mut().context("no BGP")?;
    for neighbours in bgp.vrfs.values_mut() {
        neighbours.remove(&port);
    }
    Ok(Routing::of(&model).to_frr()?)
}

fn config() -> Config {
    Config {
        bgp: Some(BgpConfig {
            asn: 4_200_000_001,
            ..BgpConfig::default()
        }),
        ..Config::new("rack-0", [10, 90, 0, 1].into(), [10, 91, 0, 1].into())
    }
}

/// zebra and bgpd in a namespace. Everything goes away with the value.
struct Daemons {
    frr: Frr,
    name: String,
    running: Vec<Process>,
}

impl Daemons {
    async fn start(dir: &Path) -> Result<Self> {
        let name = format!("mmb{}", std::process::id());
        ip(&["netns", "add", &name])?;
        let vtysh = Vtysh {
            command: ["vtysh", "-N", &name].map(str::to_owned).to_vec(),
            ..Vtysh::default()
        };
        let mut daemons = Self {
            frr: Frr::new(vtysh),
            name,
            running: Vec::new(),
        };
        let name = daemons.name.as_str();
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        let sockets = daemons.sockets();
        std::fs::create_dir_all(&sockets)?;
        let user = nix::unistd::User::from_name("frr")?.context("no user frr")?;
        chown(&sockets, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        let log = dir.join("frr.log");
        let command = |program: &str| {
            let arguments = ["ip", "netns", "exec", name, program];
            let options = ["-N", name, "-P", "0", "-f", "/dev/null"];
            arguments
                .into_iter()
                .chain(options)
                .map(str::to_owned)
                .collect()
        };
        let commands: [Vec<String>; 2] = DAEMONS.map(command);
        for command in commands {
            daemons.running.push(Process::start(&command, &log)?);
        }
        daemons.wait().await?;
        Ok(daemons)
    }

    async fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_MAX;
        while let Err(error) = self.frr.observe().await {
            for daemon in &mut self.running {
                daemon.check()?;
            }
            ensure!(Instant::now() < until, "FRR does not start: {error}");
            sleep(POLL).await;
        }
        Ok(())
    }

    fn running_config(&self) -> Result<String> {
        let mut vtysh = Command::new("vtysh");
        let output = vtysh
            .args(["-N", &self.name, "-c", "show running-config"])
            .output()?;
        ensure!(output.status.success(), "vtysh: {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn sockets(&self) -> PathBuf {
        PathBuf::from("/var/run/frr").join(&self.name)
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        self.running.clear();
        std::fs::remove_dir_all(self.sockets()).ok();
        ip(&["netns", "del", &self.name]).ok();
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status = Command::new("ip").args(arguments).status()?;
    ensure!(status.success(), "ip {arguments:?}: {status}");
    Ok(())
}
