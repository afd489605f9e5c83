//! The site: its hosts, its machine, its repository, and the controller that installs it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::json;
use tests_lab::bmc::USER;
use tests_lab::chassis::Accelerator;
use tests_lab::kvm;
use tests_lab::machine::Machine;
use tests_lab::state::{Record, write_private};
use tests_lab::timeline::Timeline;
use tests_lab::topology::{self, Topology, bmc_address};
use tests_lab::{Artefacts, Program, write_certificate};

use super::base;
use super::controller::{AnsibleTools, Controller};
use super::host::{Host, HostKit, HostPlace, make_key};
use super::packages::{DebFolder, Repository};
use crate::ansible::CoreVersion;
use crate::ansible::python;
use crate::ansible::tree;
use crate::debs::cache_dir;
use crate::{lab, osimage};

/// Addresses of the second and third control node.
const MORE_CONTROL: [(&str, Ipv4Addr); 2] = [
    ("control-2", Ipv4Addr::new(10, 90, 0, 21)),
    ("control-3", Ipv4Addr::new(10, 90, 0, 22)),
];
/// The installer that is shipped has every module and tool.
const MACHINE_MEMORY_MIB: u32 = 2048;

/// The parts that are made before there is a lab.
#[derive(Debug)]
pub(super) struct Prepared {
    tools: AnsibleTools,
    base: PathBuf,
    image: osimage::Artifacts,
    debs: DebFolder,
    previous: Option<DebFolder>,
}

/// Makes what outlives labs, and looks for the packages.
///
/// # Errors
/// Something cannot be made, or a package is missing.
pub(super) fn prepare(root: &Path, debs: &Path, previous: Option<&Path>) -> Result<Prepared> {
    let debs = DebFolder::open(debs)?;
    let previous = previous.map(DebFolder::open).transpose()?;
    let core = CoreVersion::V19;
    let environment = python::environment(root, core)?;
    let environment = environment.with_context(|| python::missing(core))?;
    Ok(Prepared {
        tools: AnsibleTools {
            environment,
            tree: tree::assemble(root)?,
        },
        base: base::tree()?,
        image: lab::image()?,
        debs,
        previous,
    })
}

/// A site that is made.
#[derive(Debug)]
pub(super) struct SitePlace {
    pub(super) record: Record,
    time: Arc<Timeline>,
    pub(super) topology: Topology,
    pub(super) hosts: Vec<Host>,
    pub(super) machine: Machine,
    pub(super) accelerator: Accelerator,
    pub(super) artefacts: Artefacts,
    pub(super) repository: Repository,
    pub(super) controller: Controller,
    pub(super) debs: DebFolder,
    pub(super) previous: Option<DebFolder>,
}

impl SitePlace {
    /// Makes hosts, machine and repository. The hosts are empty, the machine is off.
    ///
    /// # Errors
    /// A part does not come up.
    pub(super) fn build(
        root: &Path,
        record: &Record,
        time: &Arc<Timeline>,
        prepared: Prepared,
    ) -> Result<Self> {
        let topology = Topology::build(record)?;
        let kit = HostKit {
            base: prepared.base,
            script: root.join("xtask/ansible/lab/boot.sh"),
            key: record.path("site/key")?,
            admin: topology.admin.clone(),
        };
        make_key(&kit.key)?;
        let hosts = host_places(record, &topology)?
            .into_iter()
            .map(|place| Host::boot(record, &kit, place))
            .collect::<Result<Vec<_>>>()?;
        let artefacts = unpack(record, &prepared.debs, prepared.image)?;
        let accelerator = kvm::probe(&artefacts.kernel, record.dir(), &artefacts.cache)?;
        let mut machine = Machine::describe(record, 1, false)?;
        machine.memory_mib = MACHINE_MEMORY_MIB;
        machine.build(record, &topology, accelerator, None)?;
        let python = prepared.tools.environment.bin().join("python");
        let repository = Repository::serve(root, record, &topology.admin, &python)?;
        repository.publish(&[prepared.previous.as_ref().unwrap_or(&prepared.debs)])?;
        let variables = variables(record, &kit, &repository, &machine)?;
        hosts.iter().try_for_each(Host::wait)?;
        time.note(&format!("machine by {}", accelerator.name()));
        let admin = &topology.admin;
        let controller = Controller::new(root, record, admin, prepared.tools, variables);
        Ok(Self {
            record: record.clone(),
            time: Arc::clone(time),
            topology,
            hosts,
            machine,
            accelerator,
            artefacts,
            repository,
            controller,
            debs: prepared.debs,
            previous: prepared.previous,
        })
    }

    pub(super) fn time(&self) -> Arc<Timeline> {
        Arc::clone(&self.time)
    }

    pub(super) fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// The hosts with a control node, the first one first.
    pub(super) fn control_hosts(&self) -> impl Iterator<Item = &Host> {
        let is_control = |host: &&Host| host.place.name.starts_with("control-");
        self.hosts.iter().filter(is_control)
    }

    /// Copies the journals of the hosts to the logs of the lab. A host that does not answer has none.
    pub(super) fn keep_journals(&self) {
        for host in &self.hosts {
            let journal = host.ssh("journalctl --no-pager --boot");
            let log = self.record.log(&format!("journal-{}", host.place.name));
            if let (Ok(journal), Ok(log)) = (journal, log) {
                fs::write(log, journal).ok();
            }
        }
    }

    /// Takes the power of all hosts away: their process 1 does not end when it is asked to.
    pub(super) fn power_off(&self) {
        for host in &self.hosts {
            // A host that does not end is taken away with the lab.
            host.process.kill().ok();
        }
    }
}

/// Hosts in the places that the lab's programs have otherwise.
fn host_places(record: &Record, topology: &Topology) -> Result<Vec<HostPlace>> {
    let mut places = vec![HostPlace {
        name: "control-1",
        address: topology::CONTROL,
        namespace: topology.control.clone(),
        has_frr: false,
    }];
    for (name, address) in MORE_CONTROL {
        places.push(HostPlace {
            name,
            address,
            namespace: topology.add_host(record, name, address)?,
            has_frr: false,
        });
    }
    places.push(HostPlace {
        name: "mgmt-1",
        address: topology::SERVICES,
        namespace: topology.services.clone(),
        has_frr: false,
    });
    places.push(HostPlace {
        name: tests_lab::services::SWITCH,
        address: topology::LEAF,
        namespace: topology.leaf.clone(),
        has_frr: true,
    });
    Ok(places)
}

/// The lab's own copies of the command line, and of what machines boot.
fn unpack(record: &Record, debs: &DebFolder, image: osimage::Artifacts) -> Result<Artefacts> {
    let folder = record.path("site/programs/x")?.with_file_name("");
    for name in ["metalmesh-cli", "metalmesh-hammer"] {
        debs.unpack(name, &folder)?;
    }
    let boot = folder.join("usr/lib/metalmesh/boot");
    Ok(Artefacts {
        programs: [(Program::Cli, folder.join("usr/bin/metalmesh"))].into(),
        kernel: boot.join("vmlinuz"),
        initrd: boot.join("initramfs.cpio.zst"),
        image: image.image,
        image_digest: image.digest,
        cache: cache_dir()?,
    })
}

/// The file with what the inventory asks for; it has the password of the BMC.
fn variables(
    record: &Record,
    kit: &HostKit,
    repository: &Repository,
    machine: &Machine,
) -> Result<PathBuf> {
    let mut addresses = vec![topology::CONTROL];
    addresses.extend(MORE_CONTROL.map(|(_, address)| address));
    let [certificate, certificate_key] = write_certificate(record, &addresses)?;
    let bmc = bmc_address(machine.number);
    let variables = json!({
        "lab_ssh_key": kit.key,
        "lab_repository_url": Repository::url(),
        "lab_repository_key": repository.public_key(),
        "lab_certificate": certificate,
        "lab_certificate_key": certificate_key,
        "lab_token_file": token_file(record)?,
        "lab_bmc": bmc,
        "lab_bmc_user": USER,
        "lab_bmc_password": machine.password,
    });
    let file = record.path("site/variables.json")?;
    write_private(&file, &serde_json::to_vec_pretty(&variables)?)?;
    Ok(file)
}

/// The administrator's token on the controller.
pub(super) fn token_file(record: &Record) -> Result<PathBuf> {
    record.path("site/admin.token")
}
