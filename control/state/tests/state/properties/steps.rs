//! Random steps, and the commands that they stand for.

use crate::world::*;
use control_state::*;
use proptest::prelude::*;

pub(crate) const MACHINES: u128 = 4;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Boot(u128, u8),
    /// Registers with the word that it is at a port, with the card of a machine.
    Claim(u128, u128, u128),
    /// The leaf hears the card of a machine at a port; of none with zero.
    Hear(u128, u128),
    Wipe(u128, bool),
    Event(u128, usize),
    Allocate(u64),
    Install(u128, Option<bool>),
    PhoneHome(u128),
    Free(u128),
    Bmc(bool),
    Switch,
    Tick(u64),
    State(u128, usize),
    Child(u8, u8),
    DeleteChild(u8),
    Ip(u8),
    DeleteIp(usize),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let machine = 1..=MACHINES;
    prop_oneof![
        3 => (machine.clone(), 0..5u8).prop_map(|(m, b)| Step::Boot(m, b)),
        2 => (machine.clone(), 1..=8u128, machine.clone())
            .prop_map(|(m, port, card)| Step::Claim(m, port, card)),
        2 => (1..=8u128, 0..=MACHINES).prop_map(|(port, m)| Step::Hear(port, m)),
        3 => (machine.clone(), proptest::bool::weighted(0.9)).prop_map(|(m, ok)| Step::Wipe(m, ok)),
        4 => (machine.clone(), 0..EventKind::ALL.len()).prop_map(|(m, e)| Step::Event(m, e)),
        4 => any::<u64>().prop_map(Step::Allocate),
        3 => (machine.clone(), proptest::option::of(any::<bool>()))
            .prop_map(|(m, e)| Step::Install(m, e)),
        2 => machine.clone().prop_map(Step::PhoneHome),
        3 => machine.clone().prop_map(Step::Free),
        6 => proptest::bool::weighted(0.8).prop_map(Step::Bmc),
        2 => Just(Step::Switch),
        3 => (0..1_200_000u64).prop_map(Step::Tick),
        1 => (machine, 0..3usize).prop_map(|(m, s)| Step::State(m, s)),
        2 => (0..6u8, 20..27u8).prop_map(|(n, l)| Step::Child(n, l)),
        1 => (0..6u8).prop_map(Step::DeleteChild),
        2 => (0..6u8).prop_map(Step::Ip),
        1 => (0..8usize).prop_map(Step::DeleteIp),
    ]
}

pub(crate) fn child_name(number: u8) -> String {
    format!("child-{number}")
}

/// What a step asks for; nothing when there is nothing to ask.
pub(crate) fn op_of(world: &World, step: &Step, counter: u128) -> Vec<Op> {
    match step {
        Step::Boot(..)
        | Step::Claim(..)
        | Step::Hear(..)
        | Step::Wipe(..)
        | Step::Event(..)
        | Step::PhoneHome(_) => report_of(world, step),
        Step::Allocate(seed) => vec![
            AllocateMachine {
                seed: *seed,
                ..allocation_of(counter)
            }
            .into(),
        ],
        Step::Install(machine, error) => {
            let done = end_of_installation(world, *machine, *error);
            done.into_iter().map(Into::into).collect()
        }
        Step::Free(machine) => vec![
            FreeMachine {
                id: id(*machine),
                project: Some(id(1)),
            }
            .into(),
        ],
        Step::Bmc(ok) => {
            let done = end_of_bmc_order(world, *ok);
            done.into_iter().map(Into::into).collect()
        }
        Step::Switch => vec![],
        Step::Tick(_) => vec![Tick::default().into()],
        Step::State(machine, state) => vec![set_state(*machine, *state).into()],
        Step::Child(..) | Step::DeleteChild(_) | Step::Ip(_) | Step::DeleteIp(_) => {
            network_op(world, step, counter).into_iter().collect()
        }
    }
}

/// What a machine or its leaf reports in a step.
fn report_of(world: &World, step: &Step) -> Vec<Op> {
    let time = world.now;
    match step {
        Step::Boot(m, boot) => vec![
            MachineSeen {
                id: id(*m),
                partition: text(PARTITION),
                mac: Some(mac(*m)),
                seen_at: time,
                to_disk: false,
                stated_at: None,
                relayed: None,
            }
            .into(),
            registration(*m, &format!("boot-{boot}")).into(),
        ],
        Step::Claim(m, port, card) => {
            let mut registration = registration(*m, "boot-claim");
            let nic = &mut registration.hardware.nics[0];
            nic.mac = mac(*card);
            nic.neighbours[0].port_id = format!("swp{port}");
            vec![registration.into()]
        }
        Step::Hear(port, m) => {
            let heard = (*m > 0).then(|| Neighbour {
                mac: Some(mac(*m)),
                ..Neighbour::default()
            });
            let heard = heard.into_iter().collect();
            let report = world.hearing("leaf1", &format!("swp{port}"), heard);
            report.into_iter().map(Into::into).collect()
        }
        Step::Wipe(m, ok) => vec![
            WipeDone {
                id: id(*m),
                disks: vec![wiped("/dev/vda", (!ok).then_some("broken"))],
            }
            .into(),
        ],
        Step::Event(m, event) => vec![
            MachineEvent {
                id: id(*m),
                kind: EventKind::ALL[*event],
                message: String::new(),
                time,
            }
            .into(),
        ],
        Step::PhoneHome(m) => vec![
            PhoneHome {
                id: id(*m),
                project: id(1),
                message: String::new(),
                time,
            }
            .into(),
        ],
        other => panic!("{other:?} is no report"),
    }
}

/// The end of the machine's installation; `None` without an allocation.
fn end_of_installation(world: &World, machine: u128, error: Option<bool>) -> Option<InstallDone> {
    let stored = world.tables.get::<Machine>(&id(machine));
    let allocation = stored.and_then(|stored| stored.allocation.as_ref())?;
    Some(InstallDone {
        allocation: allocation.id,
        error: error.map(|_| "broken".into()),
        retryable: error.unwrap_or_default(),
        ..installed(machine, 0)
    })
}

/// The end of the first open BMC order; `None` without an open order.
fn end_of_bmc_order(world: &World, ok: bool) -> Option<BmcOrderDone> {
    let orders = life::bmc_desired(&world.tables, &text(PARTITION));
    let order = orders.first()?;
    Some(BmcOrderDone {
        id: order.id,
        partition: text(PARTITION),
        error: (!ok).then(|| "broken".into()),
        power_state: None,
        nonce: None,
    })
}

fn set_state(machine: u128, state: usize) -> SetMachineState {
    let states = [
        Availability::Available,
        Availability::Tainted,
        Availability::Locked,
    ];
    SetMachineState {
        id: id(machine),
        state: states[state],
        description: String::new(),
    }
}

/// A change of the child networks and their addresses; `None` when there is no such address.
fn network_op(world: &World, step: &Step, counter: u128) -> Option<Op> {
    match step {
        Step::Child(n, length) => {
            let length = ChildLength {
                v4: Some(*length),
                v6: None,
            };
            let op = CreateChildNetwork {
                length,
                ..child(&child_name(*n), 1)
            };
            Some(op.into())
        }
        Step::DeleteChild(n) => {
            let op = DeleteNetwork {
                id: text(&child_name(*n)),
                project: None,
            };
            Some(op.into())
        }
        Step::Ip(n) => Some(ip(counter, &child_name(*n), 1).into()),
        Step::DeleteIp(at) => {
            let key = world.tables.table::<Ip>().keys().nth(*at)?;
            let op = DeleteIp {
                key: *key,
                project: id(1),
                underlay: false,
            };
            Some(op.into())
        }
        other => panic!("{other:?} changes no network"),
    }
}
