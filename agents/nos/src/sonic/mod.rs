//! A SONiC switch: `CONFIG_DB` through redis.
//!
//! Each step is a sequence of writes ([`phase`]), each of which waits until SONiC has followed: for
//! rows in `APPL_DB`, objects in `STATE_DB`, and for a port's bridge or router interface in
//! `ASIC_DB`. What is not confirmed in time fails the step.
//!
//! - A port is in quarantine if it is in no VLAN and no interface: SONiC then forwards nothing.
//! - A port whose configuration, managers and ASIC disagree is in nobody's place, and not
//!   quarantined: what is on its way could come into effect at any time.
//! - Segments and L3 VNIs are VLANs of the range [`Config::vlans`], which is the agent's alone,
//!   unless control names the VLAN. The names of the maps from VLAN to VNI say which they are.
//! - SONiC numbers the tables of VRFs itself. Control's number is noted in `METALMESH_VRF`, so that
//!   a VRF stays the same one over a restart.
//! - Private ports are one isolation group ([`isolation`]); segments without a tunnel are noted in
//!   `METALMESH_SEGMENT`. Lists of remote tunnel ends are refused: community SONiC has none.
//! - With FRR ([`Config::frr`]) BGP and EVPN are driven as on Linux, and VRFs agree with it.
//! - Rows of others are never changed.

mod address;
mod asic;
mod config;
mod database;
mod db;
mod error;
mod isolation;
mod layer3;
mod names;
mod observe;
mod phase;
mod resp;
mod routing;
mod rows;
mod snapshot;
mod steps;
mod telemetry;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use address::Address;
pub use asic::Asic;
pub use config::Config;
pub use error::SonicError;
pub use resp::is_answer;
pub use snapshot::Snapshot;
pub use telemetry::PortRows;

use self::database::Database;
use self::db::Db;
use self::names::{TABLES, vlan_name};
use self::phase::{Phase, Sign};
use self::rows::Change;
use self::steps::Planner;
use crate::back_end::{Nos, NosError};
use crate::capability::Capability;
use crate::frr::announced::AnnouncedPrefix;
use crate::interpret::interpret;
use crate::lldp::Neighbours;
use crate::model::PortName;
use crate::observation::Observation;
use crate::router::Router;
use crate::step::Step;
use crate::telemetry::Telemetry;

/// The capabilities of the back-end. The last needs FRR.
const CAPABILITIES: &[Capability] = &[
    Capability::PrivatePorts,
    Capability::LocalSegments,
    Capability::Vlans,
    Capability::Underlay,
    Capability::Vrfs,
    Capability::Bgp,
];

/// First pause before signs are looked for again. Each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(5);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A SONiC switch.
#[derive(Debug)]
pub struct Sonic {
    config: Config,
    database: Arc<Database>,
    changed: Arc<Notify>,
    neighbours: Neighbours,
    /// One step at a time: a VLAN that a step has found free is free until it has it.
    step: Mutex<()>,
    /// `None` if somebody else configures FRR.
    router: Option<Router>,
    /// Tasks that hear of changes and neighbours; they end when the back-end is dropped.
    _tasks: JoinSet<()>,
}

impl Sonic {
    /// Opens the back-end; call it inside a tokio runtime. Redis may come later.
    #[must_use]
    pub fn open(config: Config) -> Self {
        let database = Arc::new(Database::new(config.redis.clone(), config.answer));
        let (changed, neighbours) = (Arc::<Notify>::default(), Neighbours::default());
        let mut tasks = JoinSet::new();
        let other = || Database::new(config.redis.clone(), config.answer);
        tasks.spawn(watch::changes(other(), Arc::clone(&changed)));
        tasks.spawn(watch::neighbours(other(), neighbours.clone()));
        let frr = config.frr.clone();
        Self {
            router: frr.map(|vtysh| Router::new(vtysh, routing::loopback())),
            config,
            database,
            changed,
            neighbours,
            step: Mutex::new(()),
            _tasks: tasks,
        }
    }

    async fn snapshot(&self) -> Result<Snapshot, SonicError> {
        let keys = self.database.keys(Db::Config, &TABLES).await?;
        let mut seen = Snapshot {
            config: self.database.rows(Db::Config, &keys).await?,
            ..Snapshot::default()
        };
        let (appl, state) = self.keys_of_effects(&seen);
        seen.appl = self.database.rows(Db::Appl, &appl).await?;
        seen.state = self.database.rows(Db::State, &state).await?;
        seen.asic = Asic::read(&self.database).await?;
        if let Some(kernel) = &self.config.kernel {
            let ports = seen.asic.bridged.iter();
            let half = ports.filter(|port| {
                let is_flagged = isolation::is_flagged(kernel, port);
                is_flagged != seen.asic.isolated.contains(*port)
            });
            seen.half_isolated = half.cloned().collect();
        }
        Ok(seen)
    }

    /// The keys under which `APPL_DB` and `STATE_DB` tell of what is configured.
    fn keys_of_effects(&self, seen: &Snapshot) -> (Vec<String>, Vec<String>) {
        let mut appl = vec![isolation::GROUP.to_owned()];
        let ports = seen.rows("PORT|").map(|(name, _)| name);
        for port in ports.filter(|name| self.config.is_port(name)) {
            appl.push(format!("PORT_TABLE:{port}"));
            appl.push(format!("INTF_TABLE:{port}"));
            let vlans = seen.memberships(port).filter_map(observe::member_vlan);
            appl.extend(vlans.map(|vlan| format!("VLAN_MEMBER_TABLE:{vlan}:{port}")));
        }
        let vrfs = seen.rows("VRF|");
        let vrfs = vrfs.map(|(name, _)| format!("VRF_OBJECT_TABLE|{name}"));
        let vlans = seen
            .maps()
            .map(|map| format!("VLAN_TABLE|{}", vlan_name(map.vlan)));
        for map in seen.maps() {
            let vlan = vlan_name(map.vlan);
            let addresses = seen.addresses("VLAN_INTERFACE", &vlan);
            appl.extend(addresses.map(|(_, address)| format!("INTF_TABLE:{vlan}:{address}")));
            appl.push(format!("INTF_TABLE:{vlan}"));
        }
        (appl, vrfs.chain(vlans).collect())
    }

    /// Writes a phase and waits for its signs.
    async fn run(&self, phase: &Phase) -> Result<(), SonicError> {
        if !phase.changes.is_empty() {
            self.database.change(&phase.changes).await?;
        }
        let until = Instant::now() + self.config.confirm;
        let mut pause = PAUSE;
        loop {
            let missing = self.missing(&phase.until).await?;
            if missing.is_empty() {
                return self.flag(phase);
            }
            if Instant::now() >= until {
                let missing = missing.join(", ");
                return Err(SonicError::Unconfirmed(missing, self.config.confirm));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Sets the kernel's flag of a phase.
    fn flag(&self, phase: &Phase) -> Result<(), SonicError> {
        let (Some(flag), Some(kernel)) = (&phase.flag, &self.config.kernel) else {
            return Ok(());
        };
        let done = isolation::flag(kernel, &flag.port, flag.is_on);
        done.map_err(|source| SonicError::Kernel(flag.port.clone(), source))
    }

    /// The signs that are not there yet.
    async fn missing(&self, signs: &[Sign]) -> Result<Vec<String>, SonicError> {
        let (mut appl, mut state) = (Vec::new(), Vec::new());
        for sign in signs {
            match sign {
                Sign::Applied(key, _) | Sign::NotApplied(key) => appl.push(key.clone()),
                Sign::Made(key) | Sign::NotMade(key) => state.push(key.clone()),
                Sign::Port(..) | Sign::Isolated(..) => {}
            }
        }
        let appl = self.database.rows(Db::Appl, &appl).await?;
        let state = self.database.rows(Db::State, &state).await?;
        let is_of_asic = |sign: &Sign| matches!(sign, Sign::Port(..) | Sign::Isolated(..));
        let asic = match signs.iter().any(is_of_asic) {
            true => Asic::read(&self.database).await?,
            false => Asic::default(),
        };
        let is_there = |sign: &&Sign| match sign {
            Sign::Applied(key, wanted) => appl.get(key).is_some_and(|row| {
                let has = |name: &String| row.get(name).map_or("", String::as_str);
                wanted.iter().all(|(name, value)| has(name) == value)
            }),
            Sign::NotApplied(key) => !appl.contains_key(key),
            Sign::Made(key) => state.contains_key(key),
            Sign::NotMade(key) => !state.contains_key(key),
            Sign::Port(port, in_bridge, is_routed) => {
                asic.bridged.contains(port) == *in_bridge
                    && asic.routed.contains(port) == *is_routed
            }
            Sign::Isolated(port, is_on) => asic.isolated.contains(port) == *is_on,
        };
        let missing = signs.iter().filter(|sign| !is_there(sign));
        Ok(missing.map(ToString::to_string).collect())
    }

    /// Applies the databases' part of a step.
    async fn apply_to_databases(&self, step: &Step) -> Result<(), NosError> {
        let _one = self.step.lock().await;
        let seen = self.snapshot().await?;
        let planner = Planner {
            seen: &seen,
            vlans: &self.config.vlans,
        };
        let phases = planner.phases(step)?;
        for phase in &phases {
            let done = self.run(phase).await;
            if done.is_err() && matches!(step, Step::Enter { .. }) {
                self.undo(&phases).await;
            }
            done?;
        }
        Ok(())
    }

    /// Takes back what a port could still enter later.
    async fn undo(&self, phases: &[Phase]) {
        let keys = phases.iter().flat_map(Phase::made);
        let removals: Vec<Change> = keys.map(|key| Change::Remove(key.clone())).collect();
        if let Err(error) = self.database.change(&removals).await {
            // The port is observed in nobody's place, and quarantined by the next pass.
            tracing::warn!(%error, "cannot take back an unconfirmed entry");
        }
    }
}

impl Nos for Sonic {
    fn vendor(&self) -> &'static str {
        "sonic"
    }

    fn version(&self) -> String {
        let text = std::fs::read_to_string("/etc/sonic/sonic_version.yml");
        let text = text.ok();
        let mut lines = text.iter().flat_map(|text| text.lines());
        let version = lines.find_map(|line| line.strip_prefix("build_version:"));
        version.map_or(String::new(), |version| {
            version.trim_matches([' ', '\'', '"']).to_owned()
        })
    }

    fn capabilities(&self) -> &'static [Capability] {
        match self.router {
            None => CAPABILITIES.split_at(CAPABILITIES.len() - 1).0,
            Some(_) => CAPABILITIES,
        }
    }

    async fn observe(&self) -> Result<Observation, NosError> {
        match &self.router {
            None => {
                let seen = self.snapshot().await?;
                Ok(seen.observation(|name| self.config.is_port(name)))
            }
            Some(router) => router.observe(self).await,
        }
    }

    async fn observe_applied(&self) -> Result<Observation, NosError> {
        match &self.router {
            None => self.observe().await,
            Some(router) => router.observe_applied(self).await,
        }
    }

    async fn apply(&self, step: &Step) -> Result<(), NosError> {
        self.apply_all(std::slice::from_ref(step)).await
    }

    async fn apply_all(&self, steps: &[Step]) -> Result<(), NosError> {
        if let Some(router) = &self.router {
            return router.apply(self, steps).await;
        }
        for step in steps {
            let seen = self.snapshot().await?;
            let mut model = seen.observation(|name| self.config.is_port(name)).model;
            interpret(&mut model, step)?;
            self.apply_to_databases(step).await?;
        }
        Ok(())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn announced(&self, port: &PortName) -> Result<Vec<AnnouncedPrefix>, NosError> {
        match &self.router {
            None => Ok(Vec::new()),
            Some(router) => router.announced(port).await,
        }
    }

    async fn telemetry(&self) -> Result<Telemetry, NosError> {
        let keys = self.database.keys(Db::Config, &["PORT|"]).await?;
        let names = keys.iter().filter_map(|key| key.strip_prefix("PORT|"));
        let names = names.filter(|name| self.config.is_port(name));
        let names: Vec<String> = names.map(str::to_owned).collect();
        let rows = PortRows::read(&self.database, &names).await?;
        let ports = names.iter().filter_map(|name| {
            let port = PortName::new(name).ok()?;
            Some((port, rows.port(name)))
        });
        let mut telemetry = Telemetry {
            ports: ports.collect(),
            ..Telemetry::default()
        };
        if let Some(router) = &self.router {
            router.read_sessions(&mut telemetry).await?;
        }
        Ok(telemetry)
    }

    fn neighbours(&self) -> Option<Neighbours> {
        Some(self.neighbours.clone())
    }
}
