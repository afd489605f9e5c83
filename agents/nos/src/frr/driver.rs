//! Observes and changes a running FRR.

use std::time::Duration;

use super::announced::{self, AnnouncedPrefix};
use super::delta::{Block, FrrDelta};
use super::diff::diff;
use super::error::FrrError;
use super::failures::{self, SessionFailure};
use super::model::{FrrConfig, InterfaceName, VrfName};
use super::object::FrrObject;
use super::observed::Observed;
use super::parse::parse;
use super::refresh::{Direction, Refresh};
use super::sessions::{self, BgpSession};
use super::vnis::{self, EvpnVni};
use super::vty::VtySockets;
use super::vtysh::{ARGUMENTS_MAX, Output, Vtysh};

/// Daemons whose configuration is ours.
const DAEMONS: [&str; 2] = ["zebra", "bgpd"];

/// Time until bgpd has announced what an export that changed permits: it begins 100 ms after it is asked to
/// (`BGP_ANNOUNCE_ROUTE_SHORT_DELAY_MS` of 8.4.4). Steps that follow may take other routes away.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(150);

/// vtysh's words if it finds no socket at all.
const NO_DAEMONS: &str = "failed to connect to any daemons";

/// Most characters of FRR's words in an error.
const REASON_MAX: usize = 300;

/// A running FRR: zebra and bgpd.
#[derive(Clone, Debug)]
pub struct Frr {
    vtysh: Vtysh,
    /// The daemons' own sockets, if they are those of this host.
    sockets: Option<VtySockets>,
}

impl Frr {
    /// The FRR behind a shell.
    #[must_use]
    pub fn new(vtysh: Vtysh) -> Self {
        let sockets = VtySockets::of(&vtysh.command, vtysh.timeout, vtysh.output_max);
        Self { vtysh, sockets }
    }

    /// Reads the running configuration of zebra and bgpd.
    ///
    /// Each daemon is asked for its own: what vtysh shows of both is what *either* has, so that a
    /// list which bgpd lost in a crash would still seem to be there.
    ///
    /// # Errors
    /// [`FrrError::NoDaemon`] if one does not answer; when vtysh fails.
    pub async fn observe(&self) -> Result<Observed, FrrError> {
        if let Some(sockets) = &self.sockets {
            let [zebra, bgpd] = DAEMONS.map(|daemon| sockets.ask(daemon, "show running-config"));
            let (zebra, bgpd) = tokio::try_join!(zebra, bgpd)?;
            return Ok(Observed::of_daemons(parse(&zebra), parse(&bgpd)));
        }
        let mut commands = vec!["show daemons".to_owned()];
        commands.extend(DAEMONS.map(|daemon| format!("show running-config {daemon}")));
        let output = self.vtysh.run(false, &commands).await?;
        let (daemons, configurations) = output.out.split_once('\n').unwrap_or_default();
        let running: Vec<&str> = daemons.split_whitespace().collect();
        for daemon in DAEMONS {
            if !running.contains(&daemon) {
                return Err(FrrError::NoDaemon(daemon));
            }
        }
        // Each configuration ends with a line of its own, without which it is cut off.
        let mut parts = configurations.split("\nend\n");
        let (Some(zebra), Some(bgpd), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(FrrError::NoDaemon("bgpd"));
        };
        Ok(Observed::of_daemons(parse(zebra), parse(bgpd)))
    }

    /// Brings FRR from an observed state to a desired configuration, and verifies it in the
    /// running configuration. Returns what is there now. Does nothing if nothing differs.
    ///
    /// # Errors
    /// - [`FrrError::Invalid`] before anything is done;
    /// - [`FrrError::Refused`] with the object, the line and FRR's reason; the steps before it are
    ///   done. Observe again and repeat: an instance cannot go until bgpd has heard from zebra
    ///   that its VNI has gone, for example.
    /// - [`FrrError::NotInPlace`] with the steps that would still be necessary.
    pub async fn apply(
        &self,
        observed: &Observed,
        desired: &FrrConfig,
    ) -> Result<Observed, FrrError> {
        desired.check()?;
        let delta = diff(observed, desired);
        if delta.is_empty() {
            return Ok(observed.clone());
        }
        self.run_delta(&delta).await?;
        let now = self.observe().await?;
        let rest = diff(&now, desired);
        if rest.is_empty() {
            return Ok(now);
        }
        Err(FrrError::NotInPlace(rest.blocks))
    }

    /// Forgets a VRF whose device the kernel no longer has, so that FRR does not keep its empty
    /// section for ever. FRR refuses while the device exists.
    ///
    /// # Errors
    /// When FRR refuses or vtysh fails.
    pub async fn forget_vrf(&self, vrf: VrfName) -> Result<(), FrrError> {
        let lines = vec![format!("no vrf {vrf}")];
        let object = FrrObject::Vrf(vrf);
        self.run_blocks(&[Block { object, lines }]).await
    }

    /// Sessions of every BGP instance, by VRF and neighbour.
    ///
    /// # Errors
    /// When vtysh fails or its output cannot be read.
    pub async fn sessions(&self) -> Result<Vec<BgpSession>, FrrError> {
        let text = self.show("bgpd", sessions::COMMAND).await?;
        sessions::decode(text.as_bytes()).map_err(|source| FrrError::Json {
            command: sessions::COMMAND,
            source,
        })
    }

    /// Reasons why sessions that are down went down last.
    ///
    /// # Errors
    /// When vtysh fails or its output cannot be read.
    pub async fn session_failures(&self) -> Result<Vec<SessionFailure>, FrrError> {
        let text = self.show("bgpd", failures::COMMAND).await?;
        failures::decode(text.as_bytes()).map_err(|source| FrrError::Json {
            command: failures::COMMAND,
            source,
        })
    }

    /// VNIs that EVPN knows: those of segments and those of VRFs.
    ///
    /// # Errors
    /// When vtysh fails or its output cannot be read.
    pub async fn vnis(&self) -> Result<Vec<EvpnVni>, FrrError> {
        let text = self.show("zebra", vnis::COMMAND).await?;
        vnis::decode(text.as_bytes()).map_err(|source| FrrError::Json {
            command: vnis::COMMAND,
            source,
        })
    }

    /// IP prefixes that a neighbour of the default VRF announces by EVPN, as far as its import
    /// permits them.
    ///
    /// # Errors
    /// When vtysh fails or its output cannot be read.
    pub async fn announced(&self, port: &InterfaceName) -> Result<Vec<AnnouncedPrefix>, FrrError> {
        let text = self.show("bgpd", &announced::command(port)).await?;
        announced::decode(text.as_bytes()).map_err(|source| FrrError::Json {
            command: announced::COMMAND,
            source,
        })
    }

    async fn show(&self, daemon: &'static str, command: &str) -> Result<String, FrrError> {
        if let Some(sockets) = &self.sockets {
            return sockets.ask(daemon, command).await;
        }
        let output = self.vtysh.run(false, &[command.to_owned()]).await?;
        if !output.status.success() {
            return Err(refused_command(command, &output));
        }
        Ok(output.out)
    }

    async fn run_delta(&self, delta: &FrrDelta) -> Result<(), FrrError> {
        let mut rest = delta.blocks.as_slice();
        while let Some(first) = rest.first() {
            let (some, more) = rest.split_at(batch(rest));
            if first.is_loadable() {
                self.load_blocks(some).await?;
            } else {
                self.run_blocks(some).await?;
            }
            rest = more;
        }
        self.refresh(&delta.refresh).await?;
        if delta
            .refresh
            .iter()
            .any(|of| of.direction == Direction::Out)
        {
            tokio::time::sleep(ANNOUNCED_AFTER).await;
        }
        Ok(())
    }

    /// Has bgpd judge the routes of peers again.
    async fn refresh(&self, peers: &[Refresh]) -> Result<(), FrrError> {
        if peers.is_empty() {
            return Ok(());
        }
        if let Some(sockets) = self.writable() {
            return sockets.refresh(peers).await;
        }
        let commands: Vec<String> = peers.iter().map(Refresh::command).collect();
        for some in commands.chunks(1000) {
            let output = self.vtysh.run(false, some).await?;
            if !output.status.success() {
                return Err(refused_command("clear bgp … soft", &output));
            }
        }
        Ok(())
    }

    /// The daemons' sockets, if changes may go over them.
    fn writable(&self) -> Option<&VtySockets> {
        self.sockets.as_ref().filter(|sockets| sockets.can_change())
    }

    async fn load_blocks(&self, blocks: &[Block]) -> Result<(), FrrError> {
        if let Some(sockets) = self.writable() {
            return sockets.load(blocks).await;
        }
        let output = self.vtysh.load(text(blocks)).await?;
        if !complains(&output) {
            return Ok(());
        }
        // Which one: each alone. Lines that were accepted are accepted again.
        for block in blocks {
            let one = std::slice::from_ref(block);
            let output = self.vtysh.load(text(one)).await?;
            if complains(&output) {
                return Err(load_refusal(block, &output));
            }
        }
        Ok(())
    }

    async fn run_blocks(&self, blocks: &[Block]) -> Result<(), FrrError> {
        if let Some(sockets) = self.writable() {
            return sockets.change(blocks).await;
        }
        let mut commands = vec!["configure terminal".to_owned()];
        commands.extend(blocks.iter().map(|block| block.lines.join("\n")));
        let output = self.vtysh.run(true, &commands).await?;
        if output.status.success() {
            return Ok(());
        }
        Err(refusal(blocks, &output))
    }
}

/// Number of blocks of one kind that fit into one run, at least one.
fn batch(blocks: &[Block]) -> usize {
    let mut bytes = 0;
    let loadable = blocks.first().is_some_and(Block::is_loadable);
    let fits = blocks.iter().take_while(|block| {
        bytes += block.lines.iter().map(|line| line.len() + 1).sum::<usize>();
        bytes <= ARGUMENTS_MAX && block.is_loadable() == loadable
    });
    fits.count().clamp(1, blocks.len().max(1))
}

/// Lines to be loaded. A line that leaves a section would end FRR's transaction, of which each
/// takes some 60 ms where there are thousands of filters; the next section leaves it as well.
fn text(blocks: &[Block]) -> String {
    let lines = blocks.iter().flat_map(|block| &block.lines);
    let lines = lines.filter(|line| !matches!(line.as_str(), "exit" | "exit-vrf"));
    lines.flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// `true` if vtysh has refused a line that it loaded; it ends as if it had not.
fn complains(output: &Output) -> bool {
    let complaint = |line: &str| line.starts_with('%') || line.starts_with("line ");
    !output.status.success() || said(&output.out, &output.err).any(complaint)
}

fn load_refusal(block: &Block, output: &Output) -> FrrError {
    if output.err.contains(NO_DAEMONS) {
        return FrrError::NoDaemon("zebra");
    }
    let named =
        |line: &&String| output.out.contains(line.trim()) || output.err.contains(line.trim());
    // The innermost: its section is often named as well.
    let line = block.lines.iter().rev().find(named);
    FrrError::Refused {
        object: block.object.clone(),
        line: line.map_or("", |line| line.trim()).to_owned(),
        reason: brief(&output.out, &output.err),
    }
}

/// The line that FRR refused, from its echo of the lines that it was given: it stops there.
fn refusal(blocks: &[Block], output: &Output) -> FrrError {
    let mut lines = blocks
        .iter()
        .flat_map(|block| block.lines.iter().map(move |line| (&block.object, line)));
    let mut last = None;
    let mut reason = Vec::new();
    let mut next = lines.next();
    for said in output.out.lines() {
        let echoed = next.filter(|(_, line)| {
            let (_, after) = said.split_once("# ").unwrap_or_default();
            after.trim() == line.trim()
        });
        if echoed.is_some() {
            last = echoed;
            next = lines.next();
            reason.clear();
        } else {
            reason.push(said);
        }
    }
    let Some((object, line)) = last else {
        return refused_command("configure terminal", output);
    };
    FrrError::Refused {
        object: object.clone(),
        line: line.trim().to_owned(),
        reason: brief(&reason.join("\n"), &output.err),
    }
}

fn refused_command(line: &str, output: &Output) -> FrrError {
    if output.err.contains(NO_DAEMONS) {
        return FrrError::NoDaemon("zebra");
    }
    FrrError::Command {
        line: line.to_owned(),
        reason: brief(&output.out, &output.err),
    }
}

/// FRR's words on a failure: most are on standard output, some on the other.
pub(super) fn brief(out: &str, err: &str) -> String {
    let said: Vec<&str> = said(out, err).collect();
    said.join("; ").chars().take(REASON_MAX).collect()
}

fn said<'o>(out: &'o str, err: &'o str) -> impl Iterator<Item = &'o str> {
    // A path space has no vtysh.conf of its own unless somebody writes one.
    let told = |line: &&str| !line.is_empty() && !line.contains("Can't open configuration file");
    out.lines().chain(err.lines()).map(str::trim).filter(told)
}
