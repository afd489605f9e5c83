//! The table is whole: every phase has its rows, is reached, and ends when time is up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use proto_types::{AllocationId, Asn, MachineId, ProjectId, Timestamp};
use strum::VariantArray as _;
use uuid::Uuid;

use super::effect::Effect;
use super::guard::PhaseGuard;
use super::table::{PHASES, next, rows};
use super::{PhaseEvent, STEP_ATTEMPTS_MAX, enter, phase_diagram, transition_of};
use crate::catalog::read::default_layout;
use crate::machine::entity::{
    Allocation, AllocationType, Availability, FirewallRules, HoldCause, Install, Machine, Phase,
    Segment,
};
use crate::meta::Labels;

const NOW: Timestamp = Timestamp::from_ms(1_000);

/// The place of a phase in the list: a new phase does not compile before it has one.
fn place(phase: Phase) -> usize {
    match phase {
        Phase::New => 0,
        Phase::Wiping => 1,
        Phase::Waiting => 2,
        Phase::Installing => 3,
        Phase::BootOrder => 4,
        Phase::Rebooting => 5,
        Phase::TenantPorts => 6,
        Phase::Running => 7,
        Phase::ReclaimPowerOff => 8,
        Phase::ReclaimPorts => 9,
        Phase::ReclaimBoot => 10,
        Phase::ReclaimRegister => 11,
        Phase::Held(HoldCause::Install) => 12,
        Phase::Held(HoldCause::Wipe) => 13,
        Phase::Held(HoldCause::Bmc) => 14,
        Phase::Held(HoldCause::Ports) => 15,
    }
}

#[test]
fn every_phase_has_its_rows() {
    for (at, phase) in PHASES.into_iter().enumerate() {
        assert_eq!(place(phase), at, "{phase:?}");
        let events: BTreeSet<PhaseEvent> = rows(phase).iter().map(|row| row.event).collect();
        assert!(!events.is_empty(), "nothing leads out of {phase:?}");
        assert_eq!(
            events.len(),
            rows(phase).len(),
            "{phase:?} has an event twice"
        );
    }
}

#[test]
fn every_event_leads_somewhere() {
    let listed: BTreeSet<PhaseEvent> = PHASES
        .into_iter()
        .flat_map(rows)
        .map(|row| row.event)
        .collect();
    assert_eq!(
        listed,
        BTreeSet::from_iter(PhaseEvent::VARIANTS.iter().copied())
    );
}

#[test]
fn every_phase_is_reached_from_the_first() {
    let mut reached = BTreeSet::from([Phase::New]);
    let mut fresh = vec![Phase::New];
    while let Some(phase) = fresh.pop() {
        let next = rows(phase).iter().map(|row| row.next);
        fresh.extend(next.filter(|next| reached.insert(*next)));
    }
    assert_eq!(reached, BTreeSet::from(PHASES));
}

#[test]
fn time_says_what_it_does() {
    let mut by_time: BTreeMap<PhaseEvent, BTreeSet<bool>> = BTreeMap::new();
    for phase in PHASES {
        for row in rows(phase) {
            let is_by_time = row.deadline.is_some();
            by_time.entry(row.event).or_default().insert(is_by_time);
            let acts = row.next != phase || row.effect != Effect::None;
            assert!(acts, "{:?} does nothing in {phase:?}", row.event);
            if let Some(deadline) = row.deadline {
                assert!(deadline.after_ms > 0, "{:?} in {phase:?}", row.event);
            } else {
                // A transition starts the phase anew: only time may leave a machine where it is.
                assert_ne!(row.next, phase, "{:?} leads nowhere", row.event);
            }
        }
    }
    for (event, kinds) in by_time {
        assert_eq!(kinds.len(), 1, "{event:?} is of time in some phases only");
    }
}

fn allocation(is_installed: bool) -> Allocation {
    Allocation {
        id: AllocationId::new(Uuid::nil()),
        created_at: Timestamp::ZERO,
        updated_at: Timestamp::ZERO,
        generation: 1,
        created_by: String::new(),
        project: ProjectId::new(Uuid::nil()),
        name: String::new(),
        description: String::new(),
        hostname: String::new(),
        kind: AllocationType::Machine,
        image: "debian-12.0.0".parse().unwrap(),
        networking: crate::Networking::default(),
        layout: default_layout().unwrap(),
        networks: Vec::new(),
        asn: Asn(1),
        ssh_public_keys: Vec::new(),
        userdata: String::new(),
        labels: Labels::new(),
        placement_labels: Labels::new(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        firewall_rules: FirewallRules::default(),
        install: Install {
            installed_at: is_installed.then_some(NOW),
            ..Install::default()
        },
        events_before: 0,
        closed_to_project: false,
        replaces: None,
        claim: None,
    }
}

/// A machine of which any guard may hold.
fn machine(phase: Phase, bits: u32) -> Machine {
    let is = |bit: u32| bits & (1 << bit) != 0;
    let mut machine = Machine::seen(MachineId::new(Uuid::nil()), None, Timestamp::ZERO);
    machine.phase = phase;
    machine.dirty = is(0);
    machine.allocation = is(1).then(|| Box::new(allocation(is(2))));
    if is(3) {
        machine.condition.state = Availability::Locked;
    }
    machine.segment = match (is(4), is(5)) {
        (true, _) => Segment::Isolated,
        (_, true) => Segment::Tenant,
        _ => Segment::Provisioning,
    };
    machine.reason = if is(6) {
        "a reason".into()
    } else {
        String::new()
    };
    machine.step_attempts = if is(7) { STEP_ATTEMPTS_MAX } else { 1 };
    machine
}

#[test]
fn no_other_transition_happens() {
    for phase in PHASES {
        for event in PhaseEvent::VARIANTS.iter().copied() {
            let mut is_met = false;
            for before in (0..256).map(|bits| machine(phase, bits)) {
                let Some(row) = transition_of(&before, event) else {
                    continue;
                };
                is_met = true;
                assert_eq!(Some(row), next(phase, event));
                let mut after = before.clone();
                enter(&mut after, event, NOW, "why");
                assert_eq!(after.phase, row.next, "{event:?} in {phase:?}");
                assert_eq!((after.since, after.step_attempts), (NOW, 0));
                assert_eq!(after.reason, "why");
            }
            let is_listed = next(phase, event).is_some();
            assert_eq!(is_met, is_listed, "the guard of {event:?} in {phase:?}");
        }
    }
}

#[test]
fn a_machine_is_on_offer_only_when_it_is_clean() {
    for phase in PHASES {
        for row in rows(phase).iter().filter(|row| row.next == Phase::Waiting) {
            let is_clean = [PhaseEvent::Wiped, PhaseEvent::RegisteredClean].contains(&row.event);
            assert!(
                is_clean || row.next == phase,
                "{:?} in {phase:?}",
                row.event
            );
        }
        for row in rows(phase)
            .iter()
            .filter(|row| row.next == Phase::Installing)
        {
            assert!(phase == Phase::Waiting || row.next == phase, "{phase:?}");
            assert!(
                row.guard == PhaseGuard::IsClean || row.next == phase,
                "{phase:?}"
            );
        }
    }
}

/// Source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn nothing_else_sets_a_phase() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let setters: Vec<PathBuf> = sources(&root)
        .into_iter()
        .filter(|path| !path.ends_with("machine/phase/tests.rs"))
        .filter(|path| {
            fs::read_to_string(path)
                .unwrap()
                .contains("machine.phase = ")
        })
        .collect();
    assert_eq!(setters, [root.join("machine/phase/mod.rs")]);
}

#[test]
fn the_page_has_the_phase_diagram() {
    const BEGIN: &str = "<!-- phases -->\n";
    const END: &str = "<!-- /phases -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/life-of-a-machine.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let wanted = format!(
        "{head}{BEGIN}```mermaid\n{}```\n{END}{tail}",
        phase_diagram()
    );
    if env::var_os("METALMESH_WRITE_PAGES").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(
        page == wanted,
        "docs/life-of-a-machine.md shows other phases than the table; update it: \
         METALMESH_WRITE_PAGES=1 cargo test -p control-state phase_diagram"
    );
}
