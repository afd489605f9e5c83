//! A lab as a whole: hardware, programs, people.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::Value;

use crate::artefacts::{Artefacts, Options, Program};
use crate::bmc;
use crate::chassis::Accelerator;
use crate::cli::Person;
use crate::kvm;
use crate::machine::Machine;
use crate::netns::Namespace;
use crate::process::Process;
use crate::scenario::Watcher;
use crate::services::{self, Agent};
use crate::state::Record;
use crate::timeline::Timeline;
use crate::topology::Topology;

/// Everything that a scenario works with.
#[derive(Debug)]
pub struct DataCentre {
    pub record: Record,
    pub time: Arc<Timeline>,
    pub artefacts: Artefacts,
    pub topology: Topology,
    pub machines: Vec<Machine>,
    pub accelerator: Accelerator,
    pub people: People,
    pub control: Process,
    pub agents: Vec<Agent>,
    pub image_url: String,
    watcher: Mutex<Watcher>,
}

/// The parts of a site for [`DataCentre::of_site`].
#[derive(Debug)]
pub struct InstalledSite {
    pub record: Record,
    pub time: Arc<Timeline>,
    pub topology: Topology,
    pub machine: Machine,
    pub accelerator: Accelerator,
    /// The host of the first control node.
    pub control: Process,
    /// File with the token of an administrator.
    pub admin_token: PathBuf,
}

/// Who uses the lab.
#[derive(Clone, Debug)]
pub struct People {
    pub admin: Person,
    pub tenant_a: Person,
    pub tenant_b: Person,
}

impl People {
    /// Everybody with a context file of their own. The admin sits in the management network, the
    /// tenants behind the exit router.
    ///
    /// # Errors
    /// The lab's directory is gone.
    pub fn new(record: &Record, topology: &Topology, program: &std::path::Path) -> Result<Self> {
        let person = |name: &'static str, namespace: &Namespace| -> Result<Person> {
            Ok(Person {
                name,
                namespace: namespace.clone(),
                program: program.to_owned(),
                config: record.path(&format!("{name}/config.yaml"))?,
            })
        };
        Ok(Self {
            admin: person("admin", &topology.admin)?,
            tenant_a: person("tenant-a", &topology.exit)?,
            tenant_b: person("tenant-b", &topology.exit)?,
        })
    }
}

impl DataCentre {
    /// Builds namespaces, machines and control, and gives the admin a context. No agent has
    /// joined yet, every machine is off.
    ///
    /// # Errors
    /// A part does not come up.
    pub fn build(
        record: &Record,
        options: &Options,
        artefacts: &Artefacts,
        time: Arc<Timeline>,
    ) -> Result<Self> {
        let log = record.dir().join("log");
        let redfish = options.machines > 1;
        // The one waits for a guest, the other for a download.
        let (accelerator, sushy) = std::thread::scope(|scope| {
            let sushy = redfish.then(|| scope.spawn(|| sushy(artefacts, &time, &log)));
            let accelerator = time.step("find out how machines run", &log, || {
                let found = kvm::probe(&artefacts.kernel, record.dir(), &artefacts.cache)?;
                time.note(&format!("accelerator {}", found.name()));
                Ok(found)
            });
            let sushy = sushy.map(|it| {
                it.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            anyhow::Ok((accelerator?, sushy.transpose()?.flatten()))
        })?;
        let topology = time.step("cables and namespaces", &log, || Topology::build(record))?;
        let machines = time.step("machines and their BMCs, powered off", &log, || {
            machines(
                record,
                options,
                &topology,
                accelerator,
                sushy.as_deref(),
                &time,
            )
        })?;
        let people = People::new(record, &topology, &artefacts.program(Program::Cli))?;
        let control_log = record.log("control")?;
        let control = time.step("control node", &control_log, || {
            crate::control::start(record, &topology, artefacts, &people.admin)
        })?;
        let image_url = services::images(record, &topology, artefacts)?;
        let agents = vec![
            services::core(record, &topology, artefacts)?,
            services::bmc(record, &topology, artefacts, &machines)?,
            services::pixie(record, &topology, artefacts)?,
        ];
        record.update(|s| {
            s.machines = machines.len();
            s.accelerator = accelerator.name().to_owned();
            s.environment = environment(artefacts, &people, &topology);
        })?;
        Ok(Self {
            record: record.clone(),
            time,
            artefacts: artefacts.clone(),
            topology,
            machines,
            accelerator,
            people,
            control,
            agents,
            image_url,
            watcher: Mutex::default(),
        })
    }

    /// A site that others have installed: control answers with this admin token, every agent has
    /// joined, and the machine is off.
    ///
    /// # Errors
    /// The image server does not come up, or the command line refuses the admin's context.
    pub fn of_site(site: InstalledSite, artefacts: &Artefacts) -> Result<Self> {
        let InstalledSite {
            record,
            time,
            topology,
            machine,
            accelerator,
            control,
            admin_token,
        } = site;
        let people = People::new(&record, &topology, &artefacts.program(Program::Cli))?;
        crate::control::add_context(&record, &people.admin, &admin_token, None)?;
        let image_url = services::images(&record, &topology, artefacts)?;
        record.update(|s| {
            s.machines = 1;
            s.accelerator = accelerator.name().to_owned();
            s.environment = environment(artefacts, &people, &topology);
        })?;
        Ok(Self {
            record,
            time,
            artefacts: artefacts.clone(),
            topology,
            machines: vec![machine],
            accelerator,
            people,
            control,
            agents: Vec::new(),
            image_url,
            watcher: Mutex::default(),
        })
    }

    /// All machines as the admin sees them; tells their new events.
    ///
    /// # Errors
    /// Control does not answer.
    pub fn watch(&self) -> Result<Vec<Value>> {
        let all = self.people.admin.json("machine ls")?;
        let all = all.as_array().cloned().unwrap_or_default();
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        for machine in &all {
            let uuid = machine
                .get("uuid")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let known = self.machine(uuid).map_or(uuid, |m| m.name.as_str());
            watcher.tell(&self.time, known, machine);
        }
        Ok(all)
    }

    /// What to read when the machine of that number is the trouble.
    #[must_use]
    pub fn serial_log(&self, number: usize) -> PathBuf {
        let found = self.machines.iter().find(|m| m.number == number);
        found.map_or_else(|| self.record.dir().join("log"), |m| m.serial_log.clone())
    }

    /// The agent of that kind.
    #[must_use]
    pub fn agent(&self, kind: &str) -> Option<&Agent> {
        self.agents.iter().find(|a| a.kind == kind)
    }

    /// The machine with that UUID.
    #[must_use]
    pub fn machine(&self, uuid: &str) -> Option<&Machine> {
        self.machines
            .iter()
            .find(|m| m.uuid.eq_ignore_ascii_case(uuid))
    }
}

/// What a shell needs to act as the admin: `ip netns exec $METALMESH_NETNS metalmesh …`.
fn environment(
    artefacts: &Artefacts,
    people: &People,
    topology: &Topology,
) -> Vec<(String, String)> {
    let program = artefacts.program(Program::Cli);
    let programs = program
        .parent()
        .map(|p| p.display().to_string())
        .unwrap_or_default();
    vec![
        ("METALMESH_BIN".to_owned(), programs),
        (
            "METALMESH_CONFIG".to_owned(),
            people.admin.config.display().to_string(),
        ),
        (
            "METALMESH_NETNS".to_owned(),
            topology.admin.name().to_owned(),
        ),
    ]
}

fn sushy(artefacts: &Artefacts, time: &Timeline, log: &std::path::Path) -> Result<Option<PathBuf>> {
    time.step("Redfish front", log, || {
        match bmc::sushy(&artefacts.cache) {
            Ok(environment) => Ok(Some(environment)),
            Err(error) => {
                time.note(&format!("not available, every BMC speaks IPMI: {error:#}"));
                Ok(None)
            }
        }
    })
}

fn machines(
    record: &Record,
    options: &Options,
    topology: &Topology,
    accelerator: Accelerator,
    sushy: Option<&std::path::Path>,
    time: &Timeline,
) -> Result<Vec<Machine>> {
    let mut machines = Vec::new();
    for number in 1..=options.machines {
        let machine = Machine::describe(record, number, sushy.is_some())?;
        machine.build(record, topology, accelerator, sushy)?;
        time.note(&format!(
            "{}: {:?}, BMC by {}, {}",
            machine.name,
            machine.firmware,
            machine.front.name(),
            machine.uuid
        ));
        machines.push(machine);
    }
    Ok(machines)
}
