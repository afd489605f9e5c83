//! The switches' power, and the carrier of all cables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tests_lab::chassis::qmp::{self, Monitor};

use super::super::guest::{Running, lines_of};
use super::super::qemu::Qemu;
use super::cables::{self, End, SITE, SWITCHES};

/// Size of a leaf's disk, bytes.
const DISK: u64 = 64 << 20;
/// Time until a started QEMU has its monitor, on a machine under load.
const START: Duration = Duration::from_secs(60);
/// The first line of a switch on its second serial port, before those about its ports.
const BOOT: &str = "boot";
/// Attempts to set carriers.
const TRIES: u32 = 5;

/// Switches and cables. Everything ends with the value.
#[derive(Debug)]
pub(super) struct Plant {
    dir: PathBuf,
    switches: [Qemu; SWITCHES.len()],
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<usize, Running>,
    /// Times that each switch was given power: the output of an earlier QEMU may come late.
    lives: [u32; SWITCHES.len()],
    /// Switches that have not begun to tell of their ports: what comes is of an earlier life.
    silent: BTreeSet<usize>,
    /// Ports of switches that are up.
    up: BTreeSet<(usize, String)>,
    /// A cut that comes with an event of a port.
    armed: Option<Cut>,
    has_ended: bool,
}

/// A loss of power in the middle of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) switch: usize,
    /// The port that the change is about.
    pub(super) port: String,
    /// Changes of the port that are still to come before the power goes.
    pub(super) events: u32,
}

impl Plant {
    /// Switches without power, with empty disks in `dir`.
    pub(super) fn new(dir: &Path, switches: [Qemu; SWITCHES.len()]) -> Result<Self> {
        let mut switches = switches;
        for (index, (qemu, switch)) in switches.iter_mut().zip(SWITCHES).enumerate() {
            let role = if switch.is_leaf { "leaf" } else { "spine" };
            // A panic is to be seen, not to look like a reset.
            qemu.append = format!(
                "panic=0 role={role} number={} nics={}",
                switch.number,
                cables::names(index)
            );
            qemu.more = cables::arguments(index, dir);
            qemu.more.extend(monitor(dir, switch.name));
            if switch.is_leaf {
                let disk = dir.join(format!("{}.disk", switch.name));
                File::create(&disk)?.set_len(DISK)?;
                let drive = format!("if=virtio,format=raw,file={}", disk.display());
                qemu.more.extend(["-drive".into(), drive]);
            }
        }
        Ok(Self {
            dir: dir.to_owned(),
            switches,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// QEMU's arguments of the guest with control and machines.
    pub(super) fn site_arguments(&self) -> Vec<String> {
        let mut arguments = cables::arguments(SITE, &self.dir);
        arguments.extend(monitor(&self.dir, "site"));
        let power = self.power_socket();
        arguments.extend([
            "-no-reboot".into(),
            "-chardev".into(),
            format!(
                "socket,id=power,server=on,wait=off,path={}",
                power.display()
            ),
            "-serial".into(),
            "chardev:power".into(),
        ]);
        arguments
    }

    /// Socket of the serial port over which the test says what is to happen to switches.
    pub(super) fn power_socket(&self) -> PathBuf {
        self.dir.join("power.sock")
    }

    /// Gives a switch power.
    pub(super) fn power_on(self: &Arc<Self>, switch: usize) -> Result<()> {
        let mut state = self.lock();
        if state.running.contains_key(&switch) || state.has_ended {
            bail!("{} has power", SWITCHES[switch].name);
        }
        // QEMU does not remove the monitor's socket when it is killed.
        std::fs::remove_file(self.monitor_socket(SWITCHES[switch].name)).ok();
        let mut running = Running(self.switches[switch].spawn()?);
        let output = running.0.stdout.take().context("QEMU has no output")?;
        state.running.insert(switch, running);
        state.lives[switch] += 1;
        state.silent.insert(switch);
        let (life, lines) = (state.lives[switch], lines_of(output));
        drop(state);
        let plant = Arc::clone(self);
        std::thread::spawn(move || {
            for line in lines {
                plant.port_changed(switch, life, &line);
            }
        });
        self.wait_for_monitor(SWITCHES[switch].name)?;
        self.plug(&self.lock(), |end| end.guest == switch);
        Ok(())
    }

    /// Takes the power from a switch, at once.
    pub(super) fn power_off(&self, switch: usize) {
        self.cut(&mut self.lock(), switch);
    }

    /// Resets a switch: its kernel ends at once and another one boots.
    pub(super) fn reset(&self, switch: usize) -> Result<()> {
        let mut state = self.lock();
        state.silent.insert(switch);
        self.darken(&mut state, switch);
        let socket = self.monitor_socket(SWITCHES[switch].name);
        qmp::call(&socket, "system_reset", None).map(drop)
    }

    /// Has the power go with the event of a port that is yet to come.
    pub(super) fn arm(&self, cut: Cut) {
        self.lock().armed = Some(cut);
    }

    /// Waits a while for the armed cut. `true` if the power has gone.
    pub(super) fn wait_for_cut(&self, limit: Duration) -> bool {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, limit, |state| state.armed.is_some());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.armed.is_none()
    }

    /// Gives up the armed cut. `true` if the power had gone before.
    pub(super) fn disarm(&self) -> bool {
        self.lock().armed.take().is_none()
    }

    /// Ends all switches.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.running.clear();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Reads what a switch says about one of its ports.
    fn port_changed(&self, switch: usize, life: u32, line: &str) {
        let mut state = self.lock();
        if state.lives[switch] != life || !state.running.contains_key(&switch) {
            return;
        }
        if line == BOOT {
            state.silent.remove(&switch);
        }
        let Some((port, is_up)) = parse(line) else {
            return;
        };
        if state.silent.contains(&switch) {
            return;
        }
        let key = (switch, port.to_owned());
        let has_changed = match is_up {
            true => state.up.insert(key),
            false => state.up.remove(&key),
        };
        if has_changed {
            self.plug(&state, |end| end.guest == switch && end.device == port);
        }
        let Some(armed) = &mut state.armed else {
            return;
        };
        if armed.switch == switch && armed.port == port {
            println!("fabric | {}: {}", SWITCHES[switch].name, line.trim());
            armed.events = armed.events.saturating_sub(1);
            if armed.events == 0 {
                self.cut(&mut state, switch);
                state.armed = None;
                self.changed.notify_all();
            }
        }
    }

    fn cut(&self, state: &mut State, switch: usize) {
        let mut running = state.running.remove(&switch);
        if let Some(Running(qemu)) = &mut running {
            // It may have ended by itself.
            qemu.kill().ok();
        }
        // Before the wait for its end: the light goes with the power.
        self.darken(state, switch);
    }

    /// A switch has no light on any port.
    fn darken(&self, state: &mut State, switch: usize) {
        state.up.retain(|(of, _)| *of != switch);
        self.plug(state, |end| end.guest == switch);
    }

    /// Sets the carriers of both ends of the cables that have a chosen end.
    fn plug(&self, state: &State, is_chosen: impl Fn(&End) -> bool) {
        let mut orders: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (number, cable) in cables::all().iter().enumerate() {
            if !cable.ends.iter().any(&is_chosen) {
                continue;
            }
            for (end, other) in [(0, 1), (1, 0)] {
                let guest = match cable.ends[end].guest {
                    SITE => "site",
                    switch if state.running.contains_key(&switch) => SWITCHES[switch].name,
                    _ => continue,
                };
                let up = state.has_light(&cable.ends[other]);
                let order = json!({"name": format!("cable{number}"), "up": up});
                orders.entry(guest).or_default().push(order);
            }
        }
        for (guest, orders) in orders {
            let socket = self.monitor_socket(guest);
            // A busy host may let a monitor wait longer than its client does.
            let mut tries = (0..TRIES).map(|_| set_links(&socket, &orders));
            if tries.all(|done| done.is_err()) && guest != "site" {
                println!("fabric | {guest}: its cables do not follow");
            }
        }
    }

    /// Waits until the site's guest takes commands, and sets its carriers.
    pub(super) fn plug_site(&self) -> Result<()> {
        self.wait_for_monitor("site")?;
        self.plug(&self.lock(), |end| end.guest == SITE);
        Ok(())
    }

    fn wait_for_monitor(&self, name: &str) -> Result<()> {
        let until = Instant::now() + START;
        loop {
            let answer = qmp::call(&self.monitor_socket(name), "query-status", None);
            match answer {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > until || self.has_ended() => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn monitor_socket(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.qmp"))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// `true` if the other end of a cable has a carrier from this end.
    fn has_light(&self, end: &End) -> bool {
        if end.guest == SITE {
            return true;
        }
        let is_port = end.device.starts_with("swp");
        self.running.contains_key(&end.guest)
            && (!is_port || self.up.contains(&(end.guest, end.device.clone())))
    }
}

/// Sets carriers. Without effect if the guest has not started yet, or has ended.
fn set_links(socket: &Path, orders: &[Value]) -> Result<()> {
    let mut monitor = Monitor::connect(socket)?;
    for order in orders {
        monitor.run("set_link", Some(order.clone()))?;
    }
    Ok(())
}

/// QEMU's arguments for the monitor of a guest.
fn monitor(dir: &Path, name: &str) -> [String; 2] {
    let socket = dir.join(format!("{name}.qmp"));
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    ["-qmp".into(), monitor]
}

/// The port of a line of `ip -o monitor link`, and `true` if it is up. `None` for other devices.
fn parse(line: &str) -> Option<(&str, bool)> {
    let mut words = line.split_whitespace();
    words.next()?.strip_suffix(':')?;
    let port = words.next()?.strip_suffix(':')?;
    let flags = words.next()?.strip_prefix('<')?.strip_suffix('>')?;
    let is_up = flags.split(',').any(|flag| flag == "UP");
    port.starts_with("swp").then_some((port, is_up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_state_of_ports_alone() {
        for (line, expected) in [
            (
                "4: swp1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9216 master Vrf1 state UP",
                Some(("swp1", true)),
            ),
            (
                "4: swp1: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9216 state DOWN",
                Some(("swp1", true)),
            ),
            (
                "5: swp12: <BROADCAST,MULTICAST> mtu 1500",
                Some(("swp12", false)),
            ),
            ("2: mgmt: <BROADCAST,UP> mtu 1500", None),
            ("Deleted 9: mmb4000: <BROADCAST> mtu 1500", None),
            ("    altname enp0s3", None),
            ("", None),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }
}
