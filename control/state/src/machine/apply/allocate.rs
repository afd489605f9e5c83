//! Allocation of a machine to a project, in one transaction: all of it or nothing.

use std::sync::Arc;

use proto_errors::{Error, ErrorCode};
use proto_types::{Asn, SizeId, Timestamp, is_hostname};

use crate::catalog::apply::partition::{DNS_MAX, NTP_MAX};
use crate::catalog::entity::{
    Classification, Image, ImageFeature, LAYOUT_DEFAULT, Layout, Networking, Partition, Size,
};
use crate::catalog::read::{check_image_constraint, default_layout, layout_for, newest_image};
use crate::cluster::read::{not_reconciled, restored};
use crate::fields::{check_description, check_name};
use crate::firewall::apply::guests::check_joined;
use crate::levels::{CLOSED_FIREWALLS, FABRIC_LABELS, feature_level};
use crate::machine::apply::allocate_networks::{check_networks, connect};
use crate::machine::apply::candidates::{best, chosen, not_ready};
use crate::machine::apply::idempotency::{remember, replay};
use crate::machine::command::AllocateMachine;
use crate::machine::entity::{
    Allocation, AllocationNetwork, AllocationType, ClaimGrant, EventLog, Install, Machine,
};
use crate::machine::phase::{PhaseEvent, enter};
use crate::machine::read::check_layout_fits;
use crate::meta::label;
use crate::network::apply::pool;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::apply::quota::within;
use crate::tenancy::entity::Project;

/// SSH keys per machine; a request with more is refused.
const KEYS_MAX: usize = 50;
/// Longest SSH key, characters; a longer one is refused.
const KEY_MAX: usize = 8192;
/// Longest user data, bytes of base64; longer data is refused. The whole log entry carries it.
const USERDATA_MAX: usize = 32_768;

/// Refuses SSH keys that are too many, too long, or not one line each.
pub(crate) fn check_keys(keys: &[String]) -> CheckResult {
    // Hammer writes each key as a line of authorized_keys: a newline would smuggle in another line.
    let is_key = |key: &String| {
        (1..=KEY_MAX).contains(&key.chars().count()) && key.trim() == key && !key.contains('\n')
    };
    if keys.len() > KEYS_MAX {
        return Err(Error::invalid(
            "ssh_public_keys",
            format!("must be at most {KEYS_MAX}"),
        ));
    }
    if keys.iter().all(is_key) {
        Ok(())
    } else {
        Err(Error::invalid(
            "ssh_public_keys",
            "must be single lines of at most 8192 characters",
        ))
    }
}

fn check_request(op: &AllocateMachine) -> CheckResult {
    check_name(&op.name)?;
    check_description(&op.description)?;
    check_keys(&op.ssh_public_keys)?;
    if op
        .hostname
        .as_deref()
        .is_some_and(|name| !is_hostname(name))
    {
        return Err(Error::invalid("hostname", "must be a host name"));
    }
    if op.userdata.len() > USERDATA_MAX {
        return Err(Error::invalid(
            "userdata",
            format!("must be at most {USERDATA_MAX} bytes"),
        ));
    }
    if op.dns_servers.len() > DNS_MAX {
        return Err(Error::invalid("dns_servers", "must be at most 3"));
    }
    if op.ntp_servers.len() > NTP_MAX {
        return Err(Error::invalid("ntp_servers", "must be at most 10"));
    }
    match (op.machine, &op.partition, &op.size) {
        (Some(_), None, None) | (None, Some(_), Some(_)) => Ok(()),
        (Some(_), ..) => Err(Error::invalid("uuid", "excludes partition and size")),
        (None, None, _) => Err(Error::invalid("partition", "is missing")),
        (None, _, None) => Err(Error::invalid("size", "is missing")),
    }
}

/// The claim that an allocation is made for.
#[derive(Debug, Clone)]
pub(crate) struct ClaimAllocation {
    /// The claim, and the epoch of its binding.
    pub(crate) grant: ClaimGrant,
    /// The caller that made the claim: the command may be another one's.
    pub(crate) created_by: String,
}

/// Allocates without a look at the quota.
fn allocate(tx: &mut Tx<'_>, op: &AllocateMachine, claim: Option<&ClaimAllocation>) -> ApplyResult {
    // The replay comes before every check: the image or size may be gone by the time a client
    // repeats a call whose answer it lost, and it must still get its machine.
    if let Some(machine) = replay(tx, op)? {
        return Ok(Reply::Machine(machine));
    }
    check_request(op)?;
    tx.tables().require::<Project>(&op.project)?;
    let image = usable_image(tx, op)?;
    if let Some(partition) = &op.partition {
        tx.tables().require::<Partition>(partition)?;
    }
    let networks = check_networks(tx.tables(), op)?;
    // The layout is checked before a machine is chosen: a bad request gets its own error, and not
    // `NoMachineAvailable` as long as the partition happens to be full.
    if let Some(size) = &op.size {
        tx.tables().require::<Size>(size)?;
        usable_layout(tx.tables(), op, size, &image)?;
    }
    let mut machine = offered(tx.tables(), op, claim, tx.now)?;
    let (Some(partition), Some(size)) = (machine.partition.clone(), machine.size.clone()) else {
        return Err(not_ready(&machine, "it is in no partition or has no size"));
    };
    // Once more with the machine's own size: a request by machine id names none.
    let layout = usable_layout(tx.tables(), op, &size, &image)?;
    check_layout_fits(&layout, &machine.hardware)?;
    let asn = pool::next_asn(tx, op.project)?;
    let connected = connect(tx, op, &networks, &partition, machine.id, asn)?;
    let partition = tx.tables().require::<Partition>(&partition)?.clone();
    check_connected(tx.tables(), op.kind, &partition, &image, &connected)?;
    machine.allocation = Some(Box::new(Allocation {
        id: op.id,
        created_at: tx.now,
        updated_at: Timestamp::ZERO,
        generation: 1,
        created_by: claim.map_or_else(|| tx.actor.to_owned(), |claim| claim.created_by.clone()),
        project: op.project,
        name: op.name.clone(),
        description: op.description.clone(),
        hostname: op.hostname.clone().unwrap_or_else(|| "metal".into()),
        kind: op.kind,
        image: image.id.clone(),
        networking: networking(tx.tables(), op.kind, &partition, &image)?,
        layout,
        networks: connected,
        asn,
        ssh_public_keys: op.ssh_public_keys.clone(),
        userdata: op.userdata.clone(),
        labels: op.labels.clone(),
        placement_labels: op.placement_labels.clone(),
        dns_servers: or_default(&op.dns_servers, &partition.dns_servers),
        ntp_servers: or_default(&op.ntp_servers, &partition.ntp_servers),
        firewall_rules: op.firewall_rules.clone(),
        install: Install {
            attempt: 1,
            ..Install::default()
        },
        events_before: recorded_events(tx.tables(), &machine),
        closed_to_project: is_closed(tx.tables(), op.kind),
        replaces: None,
        claim: claim.map(|claim| claim.grant),
    }));
    begin(tx, &mut machine, asn);
    let machine = tx.update(machine);
    crate::machine::apply::vpn::admit(tx, op, &machine);
    remember(tx, op, machine.id);
    Ok(Reply::Machine(machine))
}

/// Number of events of a machine so far: a reader tells this tenancy's from the last tenant's by it.
fn recorded_events(tables: &Tables, machine: &Machine) -> u64 {
    let log = tables.get::<EventLog>(&machine.id);
    log.map_or(0, |log| log.recorded)
}

/// `true` for a firewall whose keys and user data cannot be its project's.
fn is_closed(tables: &Tables, kind: AllocationType) -> bool {
    kind == AllocationType::Firewall && feature_level(tables) >= CLOSED_FIREWALLS
}

/// Refuses networks that are not for a machine of this kind.
fn check_connected(
    tables: &Tables,
    kind: AllocationType,
    partition: &Partition,
    image: &Image,
    connected: &[AllocationNetwork],
) -> CheckResult {
    match kind {
        AllocationType::Firewall => check_joined(tables, connected),
        AllocationType::Machine => check_reachable(tables, partition, image, connected),
    }
}

/// Refuses an address that a bridged machine could not be reached at. Its leaves know the prefixes of
/// its child network and no route to another address, which only a machine that speaks BGP announces.
fn check_reachable(
    tables: &Tables,
    partition: &Partition,
    image: &Image,
    connected: &[AllocationNetwork],
) -> CheckResult {
    let networking = networking(tables, AllocationType::Machine, partition, image);
    if !partition.has_evpn() || networking? == Networking::Routed {
        return Ok(());
    }
    let mut others = connected.iter().filter(|network| !network.kind.is_child());
    let Some(other) = others.find(|network| !network.ips.is_empty()) else {
        return Ok(());
    };
    let rule = format!(
        "machines with image \"{}\" are bridged in this partition: nobody would reach an address \
         of network \"{}\", because only its child network is routed to a bridged machine",
        image.id, other.network
    );
    let error = Error::new(ErrorCode::NetworkNotAllowed, rule).object("network", &other.network);
    Err(error.hint(format!(
        "use an image that speaks BGP (label {} = \"routed\"), or give the address to a firewall \
         in front of the machine",
        label::NETWORKING
    )))
}

/// The network of the installed system. Static while an older control node, which would not store
/// it, is in the cluster. The API refuses other texts; one in the state is older than the label's
/// meaning.
fn networking(
    tables: &Tables,
    kind: AllocationType,
    partition: &Partition,
    image: &Image,
) -> Result<Networking, Error> {
    if feature_level(tables) < FABRIC_LABELS {
        return Ok(Networking::Static);
    }
    let chosen = Networking::of_image(&image.meta.labels)?;
    Ok(match kind {
        AllocationType::Machine => chosen.in_partition(partition),
        AllocationType::Firewall => chosen,
    })
}

/// The servers that the request names, or the partition's if it names none.
fn or_default<T: Clone>(named: &[T], default: &[T]) -> Vec<T> {
    let servers = if named.is_empty() { default } else { named };
    servers.to_vec()
}

/// The machine named by the request, or the best candidate for it.
fn offered(
    tables: &Tables,
    op: &AllocateMachine,
    claim: Option<&ClaimAllocation>,
    now: Timestamp,
) -> Result<Machine, Error> {
    // A machine that is free in the backup may be a tenant's since: nothing is handed out before
    // the operator has reconciled the state.
    if restored(tables).is_some() {
        return Err(not_reconciled());
    }
    match op.machine {
        Some(id) => chosen(tables, op, id, claim.map(|claim| claim.grant.claim), now),
        None => best(tables, op),
    }
}

/// Enters the tenancy: label, phase (which marks the disks dirty) and trace.
fn begin(tx: &Tx<'_>, machine: &mut Machine, asn: Asn) {
    machine
        .meta
        .labels
        .insert(label::MACHINE_ASN.into(), asn.to_string());
    enter(machine, PhaseEvent::Allocated, tx.now, "");
    machine.trace = tx.trace.map(str::to_owned);
}

/// The newest image of the request, if the machine may be installed with it now.
fn usable_image(tx: &Tx<'_>, op: &AllocateMachine) -> Result<Arc<Image>, Error> {
    let id = op.image.as_str();
    let supported = Some(Classification::Supported);
    let image = newest_image(tx.tables(), id, supported, tx.now)?;
    let refuse = |why: &str| {
        Err(Error::new(
            ErrorCode::ImageNotUsable,
            format!("image \"{}\" {why}", image.id),
        )
        .object("image", &image.id))
    };
    let (feature, name) = match op.kind {
        AllocationType::Machine => (ImageFeature::Machine, "is not for machines"),
        AllocationType::Firewall => (ImageFeature::Firewall, "is not for firewalls"),
    };
    if !image.features.contains(&feature) {
        return Err(Error::invalid("image", format!("\"{}\" {name}", image.id)));
    }
    if tx.now >= image.expires_at {
        return refuse("has expired");
    }
    // Hammer refuses an image that it cannot verify: fail the call, not the installation.
    if image.digest().is_none() {
        return Err(Error::new(
            ErrorCode::ImageWithoutDigest,
            format!("image \"{}\" has no label {}", image.id, label::DIGEST),
        )
        .object("image", &image.id));
    }
    Ok(Arc::clone(image))
}

/// The layout of the request, or the one that matches size and image. Refuses an image that the
/// size does not allow.
fn usable_layout(
    tables: &Tables,
    op: &AllocateMachine,
    size: &SizeId,
    image: &Image,
) -> Result<Layout, Error> {
    check_image_constraint(tables, size, image)?;
    match &op.layout {
        Some(id) if id.as_str() == LAYOUT_DEFAULT => default_layout(),
        Some(id) => tables
            .require::<Layout>(id)
            .map(|layout| Layout::clone(layout)),
        None => {
            let id = layout_for(tables, size, image)?;
            tables
                .require::<Layout>(&id)
                .map(|layout| Layout::clone(layout))
        }
    }
}

/// Refuses a request that cannot be met whatever machine it gets.
pub(crate) fn check_wanted(tx: &Tx<'_>, op: &AllocateMachine) -> CheckResult {
    check_request(op)?;
    usable_image(tx, op)?;
    check_networks(tx.tables(), op)?;
    match &op.layout {
        Some(id) if id.as_str() != LAYOUT_DEFAULT => tx.tables().require::<Layout>(id).map(drop),
        _ => Ok(()),
    }
}

/// Allocates within the project's quota.
pub(crate) fn allocate_machine(tx: &mut Tx<'_>, op: &AllocateMachine) -> ApplyResult {
    within(tx, op.project, |tx| allocate(tx, op, None))
}

/// Allocates the host that is bound to a claim, within the quota of its project.
pub(crate) fn allocate_for_claim(
    tx: &mut Tx<'_>,
    op: &AllocateMachine,
    claim: &ClaimAllocation,
) -> ApplyResult {
    within(tx, op.project, |tx| allocate(tx, op, Some(claim)))
}
