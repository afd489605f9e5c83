//! Credentials of one boot: the tickets, certificates and tokens of hammer, and their ends.

use control_state::*;
use proto_types::Timestamp;

use crate::world::*;

const HOUR: u64 = 3_600_000;

fn hammer(number: u128) -> String {
    let machine: proto_types::MachineId = id(number);
    format!("spiffe://test/machine/{machine}")
}

fn seen(world: &World) -> MachineSeen {
    MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at: world.now,
        to_disk: false,
        stated_at: None,
        relayed: None,
    }
}

pub(crate) fn issue_ticket(world: &World, ticket: u128) -> IssueBootTicket {
    IssueBootTicket {
        id: id(ticket),
        machine: id(1),
        mac: mac(1),
        partition: text(PARTITION),
        secret: sha(1),
        expires_at: world.now.plus_ms(300_000),
    }
}

pub(crate) fn redeem(ticket: u128) -> RedeemBootTicket {
    RedeemBootTicket {
        id: id(ticket),
        secret: sha(1),
        machine: id(1),
        mac: mac(1),
        nonce: None,
    }
}

fn certificate(now: Timestamp, serial: &str, cause: Cause) -> IssueCertificate {
    IssueCertificate {
        certificate: Certificate {
            serial: serial.into(),
            identity: hammer(1),
            issued_at: now,
            not_after: now.plus_ms(HOUR),
            machine: Some(id(1)),
            allocation: None,
            key: Some(sha(9)),
            authority: 1,
            revoked_at: None,
            revoked_reason: String::new(),
        },
        cause,
    }
}

fn renewal(world: &World, serial: &str) -> IssueCertificate {
    certificate(world.now, serial, Cause::Renewal(sha(9)))
}

/// Hammer joins with a fresh ticket; its certificate has that serial number.
fn join(world: &mut World, ticket: u128, serial: &str) {
    world.ok(issue_ticket(world, ticket));
    world.ok(redeem(ticket));
    let by = JoinedBy::BootTicket(id(ticket));
    world.ok(certificate(world.now, serial, Cause::Join(by)));
}

fn good(world: &World, serial: &str) -> bool {
    query::is_certificate_good(&world.tables, serial, world.now)
}

pub(crate) fn token(world: &World, token: u128, machine: u128) -> CreateToken {
    let machine: proto_types::MachineId = id(machine);
    CreateToken {
        id: id(token),
        user: "pixiecore".into(),
        description: String::new(),
        labels: Labels::new(),
        permissions: vec![],
        expires: world.now.plus_ms(8 * HOUR),
        token_type: TokenType::Api,
        project_roles: Default::default(),
        tenant_roles: Default::default(),
        admin_role: None,
        warrant: None,
        infra_role: None,
        machine_roles: [(machine.to_string(), EditorViewer::Editor)].into(),
    }
}

fn boot_token(world: &World, number: u128) -> CreateMachineToken {
    CreateMachineToken {
        token: token(world, number, 1),
        machine: id(1),
    }
}

fn is_valid(world: &World, number: u128) -> bool {
    let found = world.tables.get::<Token>(&id(number)).unwrap();
    found.is_valid(world.now)
}

fn allocate(world: &mut World, allocation: u128) {
    world.ok(AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(allocation)
    });
}

#[test]
fn a_boot_ticket_is_for_phases_in_which_hammer_boots() {
    let mut world = World::new();
    world.waiting(1);
    world.ok(issue_ticket(&world, 1));
    allocate(&mut world, 1);
    world.ok(issue_ticket(&world, 2));
    world.event(1, EventKind::Installing);
    world.ok(installed(1, 1));
    assert_eq!(world.phase(1), Phase::BootOrder);
    assert_eq!(world.refused(redeem(2)), ErrorCode::WrongPhase);
    let refused = |world: &mut World, phase| {
        assert_eq!(world.phase(1), phase);
        let ticket = issue_ticket(world, 3);
        assert_eq!(world.refused(ticket), ErrorCode::WrongPhase, "{phase}");
        let token = boot_token(world, 3);
        assert_eq!(world.refused(token), ErrorCode::WrongPhase, "{phase}");
    };
    refused(&mut world, Phase::BootOrder);
    world.bmc(BmcAction::BootDisk, None);
    refused(&mut world, Phase::Rebooting);
    world.event(1, EventKind::BootingNewKernel);
    world.phone_home(1);
    refused(&mut world, Phase::Running);
    world.free(1);
    refused(&mut world, Phase::ReclaimPowerOff);
    world.bmc(BmcAction::PowerOff, None);
    refused(&mut world, Phase::ReclaimPorts);
    world.switch_obeys();
    assert_eq!(world.phase(1), Phase::ReclaimBoot);
    world.ok(issue_ticket(&world, 3));
}

#[test]
fn the_next_boot_ends_the_one_before() {
    let mut world = World::new();
    world.boot(1, "boot-1");
    join(&mut world, 1, "aa");
    world.ok(renewal(&world, "ab"));
    // A stranger of the segment may send such a packet.
    world.ok(seen(&world));
    world.ok(issue_ticket(&world, 2));
    assert!(good(&world, "aa") && good(&world, "ab"));
    world.ok(redeem(2));
    assert!(!good(&world, "aa") && !good(&world, "ab"));
    assert_eq!(
        world.refused(renewal(&world, "ac")),
        ErrorCode::CertificateRevoked
    );
    let by = JoinedBy::BootTicket(id(2));
    world.ok(certificate(world.now, "ba", Cause::Join(by)));
    world.ok(renewal(&world, "bb"));
    assert!(good(&world, "ba") && good(&world, "bb"));
    let earlier = JoinedBy::BootTicket(id(1));
    let again = certificate(world.now, "ad", Cause::Join(earlier));
    assert_eq!(world.refused(again), ErrorCode::TicketRevoked);
}

#[test]
fn the_installed_system_ends_the_boot_of_hammer() {
    for way in ["it says goodbye", "pixie sees it", "it phones home", "time"] {
        let mut world = World::new();
        world.waiting(1);
        join(&mut world, 1, "aa");
        world.ok(boot_token(&world, 7));
        // The token's own boot took the place of the mesh's.
        assert!(!good(&world, "aa") && is_valid(&world, 7));
        join(&mut world, 2, "ba");
        assert!(!is_valid(&world, 7));
        allocate(&mut world, 1);
        world.event(1, EventKind::Installing);
        world.ok(installed(1, 1));
        world.bmc(BmcAction::BootDisk, None);
        assert_eq!(world.phase(1), Phase::Rebooting);
        assert!(good(&world, "ba"), "it waits for the order to reboot");
        match way {
            "it says goodbye" => {
                world.event(1, EventKind::BootingNewKernel);
                assert!(good(&world, "ba"), "it hears the answer first");
                world.tick(1000);
            }
            "pixie sees it" => drop(world.ok(seen(&world))),
            "it phones home" => world.phone_home(1),
            _ => {
                world.later(120_000);
                world.tick(0);
                // A hand-over without a word of hammer waits for its power cycle.
                if world.machine(1).segment != Segment::Tenant {
                    continue;
                }
            }
        }
        assert!(!good(&world, "ba"), "{way}");
        assert!(world.refused(renewal(&world, "bb")) != ErrorCode::Internal);
        assert_eq!(world.tables.all::<BootTicket>().count(), 0, "{way}");
    }
}

#[test]
fn a_release_ends_the_boot_of_hammer() {
    let mut world = World::new();
    world.waiting(1);
    join(&mut world, 1, "aa");
    allocate(&mut world, 1);
    world.ok(issue_ticket(&world, 2));
    assert!(good(&world, "aa"));
    world.free(1);
    assert!(!good(&world, "aa"));
    assert_eq!(world.refused(redeem(2)), ErrorCode::TicketUnknown);
}

#[test]
fn a_machine_goes_out_of_tokens_with_the_boot() {
    let mut world = World::new();
    world.waiting(1);
    world.ok(boot_token(&world, 7));
    // Hammer's token can make others of its rights, and whoever has it can.
    world.ok(token(&world, 8, 1));
    let machine: proto_types::MachineId = id(1);
    let by_method = CreateToken {
        machine_roles: Default::default(),
        permissions: vec![MethodPermission {
            subject: machine.to_string(),
            methods: vec!["/metalstack.infra.v2.BootService/Wait".into()],
        }],
        ..token(&world, 9, 1)
    };
    world.ok(by_method);
    let with_more = CreateToken {
        infra_role: Some(EditorViewer::Viewer),
        ..token(&world, 10, 1)
    };
    world.ok(with_more);
    world.ok(token(&world, 11, 2));
    world.ok(boot_token(&world, 12));
    for ended in [7, 8, 9] {
        assert!(!is_valid(&world, ended), "{ended}");
    }
    assert!(is_valid(&world, 10) && is_valid(&world, 11) && is_valid(&world, 12));
    let rest = world.tables.get::<Token>(&id(10)).unwrap();
    assert!(rest.machine_roles.is_empty());
    allocate(&mut world, 1);
    assert!(is_valid(&world, 12));
    world.free(1);
    assert!(!is_valid(&world, 12) && is_valid(&world, 11));
}

#[test]
fn an_installed_systems_identity_is_of_one_allocation() {
    let mut world = World::new();
    let project_machine = |now: Timestamp, serial: &str, allocation: u128, cause| {
        let machine: proto_types::MachineId = id(1);
        let project: proto_types::ProjectId = id(1);
        let mut op = certificate(now, serial, cause);
        op.certificate.identity = format!("spiffe://test/project/{project}/machine/{machine}");
        op.certificate.allocation = Some(id(allocation));
        op
    };
    world.waiting(1);
    allocate(&mut world, 1);
    let join = Cause::Join(JoinedBy::Allocation(id(1)));
    world.ok(project_machine(world.now, "p1", 1, join));
    world.install(1, 1);
    world.phone_home(1);
    world.free(1);
    assert!(!good(&world, "p1"));
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    world.bmc(BmcAction::BootPxe, None);
    world.bmc(BmcAction::PowerOn, None);
    world.boot(1, "boot-2");
    world.wipe(1);
    world.event(1, EventKind::Waiting);
    allocate(&mut world, 2);
    // The same project has the machine again; the key of its first system stays out.
    for allocation in [1, 2] {
        let renewal = Cause::Renewal(sha(9));
        let again = project_machine(world.now, "p2", allocation, renewal);
        let code = world.refused(again);
        assert!(
            matches!(
                code,
                ErrorCode::CertificateRevoked | ErrorCode::MachineNotAllocated
            ),
            "{code:?}"
        );
    }
    let first = Cause::Join(JoinedBy::Allocation(id(1)));
    let stale = project_machine(world.now, "p2", 2, first);
    assert_eq!(world.refused(stale), ErrorCode::TicketRevoked);
}
