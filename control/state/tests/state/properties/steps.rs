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
    let time = world.now;
    let partition = || text(PARTITION);
    match step {
        Step::Boot(m, boot) => vec![
            MachineSeen {
                id: id(*m),
                partition: partition(),
                mac: Some(mac(*m)),
                seen_at: time,
                to_disk: false,
                stated_at: None,
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
        Step::Wipe(m, ok) => {
            let error = (!ok).then_some("broken");
            vec![
                WipeDone {
                    id: id(*m),
                    disks: vec![wiped("/dev/vda", error)],
                }
                .into(),
            ]
        }
        Step::Event(m, event) => {
            let kind = EventKind::ALL[*event];
            vec![
                MachineEvent {
                    id: id(*m),
                    kind,
                    message: String::new(),
                    time,
                }
                .into(),
            ]
        }
        Step::Allocate(seed) => {
            vec![
                AllocateMachine {
                    seed: *seed,
                    ..allocation_of(counter)
                }
                .into(),
            ]
        }
        Step::Install(m, error) => {
            let machine = world.tables.get::<Machine>(&id(*m));
            let allocation = machine.and_then(|machine| machine.allocation.as_ref());
            allocation
                .map(|allocation| InstallDone {
                    allocation: allocation.id,
                    error: error.map(|_| "broken".into()),
                    retryable: error.unwrap_or_default(),
                    ..installed(*m, 0)
                })
                .into_iter()
                .map(Into::into)
                .collect()
        }
        Step::PhoneHome(m) => {
            vec![
                PhoneHome {
                    id: id(*m),
                    project: id(1),
                    message: String::new(),
                    time,
                }
                .into(),
            ]
        }
        Step::Free(m) => vec![
            FreeMachine {
                id: id(*m),
                project: Some(id(1)),
            }
            .into(),
        ],
        Step::Bmc(ok) => life::bmc_desired(&world.tables, &partition())
            .first()
            .map(|order| BmcOrderDone {
                id: order.id,
                partition: partition(),
                error: (!ok).then(|| "broken".into()),
                power_state: None,
                nonce: None,
            })
            .into_iter()
            .map(Into::into)
            .collect(),
        Step::Switch => vec![],
        Step::Tick(_) => vec![Tick::default().into()],
        Step::State(m, state) => {
            let states = [
                Availability::Available,
                Availability::Tainted,
                Availability::Locked,
            ];
            let state = states[*state];
            vec![
                SetMachineState {
                    id: id(*m),
                    state,
                    description: String::new(),
                }
                .into(),
            ]
        }
        Step::Child(n, length) => {
            let length = ChildLength {
                v4: Some(*length),
                v6: None,
            };
            vec![
                CreateChildNetwork {
                    length,
                    ..child(&child_name(*n), 1)
                }
                .into(),
            ]
        }
        Step::DeleteChild(n) => {
            vec![
                DeleteNetwork {
                    id: text(&child_name(*n)),
                    project: None,
                }
                .into(),
            ]
        }
        Step::Ip(n) => vec![
            CreateIp {
                id: id(counter),
                network: text(&child_name(*n)),
                project: id(1),
                name: String::new(),
                description: String::new(),
                labels: Labels::new(),
                kind: IpType::Static,
                ip: None,
                family: None,
                machine: None,
                underlay: false,
            }
            .into(),
        ],
        Step::DeleteIp(at) => world
            .tables
            .table::<Ip>()
            .keys()
            .nth(*at)
            .map(|key| {
                DeleteIp {
                    key: *key,
                    project: id(1),
                    underlay: false,
                }
                .into()
            })
            .into_iter()
            .collect(),
    }
}
