//! Power: reboots by request, holds of several actors, and orders of an earlier epoch.

use control_state::*;
use proto_types::PartitionId;

use super::site::*;
use crate::agents::certificate;
use crate::boots::{issue_ticket, redeem};
use crate::world::*;

fn running() -> World {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    world
}

fn reboot(request: &str) -> RebootClaim {
    RebootClaim {
        id: claim_id(1),
        project: id(1),
        epoch: None,
        request: request.into(),
        mode: RebootMode::Soft,
    }
}

fn hold(key: &str, is_held: bool) -> HoldClaim {
    HoldClaim {
        id: claim_id(1),
        project: id(1),
        epoch: None,
        key: key.into(),
        is_held,
        reason: String::new(),
    }
}

fn by(actor: HoldActor, key: &str, is_held: bool) -> HoldHost {
    HoldHost {
        machine: id(1),
        actor,
        key: key.into(),
        is_held,
        reason: String::new(),
    }
}

#[test]
fn a_request_reboots_once() {
    let mut world = running();
    world.ok(reboot("r-1"));
    assert_eq!(world.open_orders(), [BmcAction::PowerReset]);
    // The same request after a lost answer, also once it is done.
    world.ok(reboot("r-1"));
    assert_eq!(world.open_orders(), [BmcAction::PowerReset]);
    // Another one while it is open is one too many.
    assert_eq!(world.refused(reboot("r-2")), ErrorCode::TooMany);
    world.bmc(BmcAction::PowerReset, None);
    world.ok(reboot("r-1"));
    assert_eq!(world.open_orders(), []);
    let hard = RebootClaim {
        mode: RebootMode::Hard,
        ..reboot("r-1")
    };
    assert_eq!(world.refused(hard), ErrorCode::KeyReused);
    world.ok(reboot("r-2"));
    world.bmc(BmcAction::PowerReset, Some("the BMC is away"));
    let reboots = &world.claim(1).reboots;
    let errors: Vec<bool> = reboots.iter().map(|one| one.error.is_some()).collect();
    assert_eq!(errors, [false, true]);
    assert!(reboots.iter().all(|one| one.ended_at.is_some()));
}

#[test]
fn reboots_are_limited_and_remembered() {
    let mut world = running();
    for number in 0..REBOOTS_PER_HOUR_MAX {
        world.ok(reboot(&format!("r-{number}")));
        world.bmc(BmcAction::PowerReset, None);
    }
    assert_eq!(world.refused(reboot("further")), ErrorCode::TooMany);
    world.later(3_600_000);
    for number in 10..20 {
        world.ok(reboot(&format!("r-{number}")));
        world.bmc(BmcAction::PowerReset, None);
        world.later(600_000);
    }
    assert_eq!(world.claim(1).reboots.len(), REBOOTS_KEPT_MAX);
}

#[test]
fn only_a_running_claim_is_rebooted() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.refused(reboot("r")), ErrorCode::ClaimNotActive);
    let mut world = running();
    world.ok(hold("job", true));
    assert_eq!(world.refused(reboot("r")), ErrorCode::ClaimNotActive);
}

#[test]
fn the_host_is_on_while_nobody_holds_it_and_the_claim_wants_so() {
    let mut world = running();
    assert!(world.open_orders().is_empty());
    world.ok(hold("job", true));
    world.bmc(BmcAction::PowerOff, None);
    // A second actor: its hold stays when the project ends its own.
    world.ok(by(HoldActor::Admin, "audit", true));
    world.ok(by(HoldActor::Maintenance, "fan", true));
    assert!(world.open_orders().is_empty(), "it is off");
    world.ok(hold("job", false));
    world.ok(hold("audit", false));
    assert!(world.open_orders().is_empty(), "administrators hold it");
    // An actor ends its own holds alone.
    world.ok(by(HoldActor::Remediation, "audit", false));
    world.ok(by(HoldActor::Admin, "fan", false));
    assert_eq!(world.pool_host(1).holds.len(), 2);
    world.ok(by(HoldActor::Admin, "audit", false));
    assert!(world.open_orders().is_empty(), "maintenance holds it");
    world.ok(by(HoldActor::Maintenance, "fan", false));
    world.bmc(BmcAction::PowerOn, None);
    // The claim's own wish.
    world.ok(intent(
        1,
        ClaimSpec {
            powered_on: false,
            ..installing(&[])
        },
    ));
    world.bmc(BmcAction::PowerOff, None);
    assert!(world.condition(1, ClaimConditionKind::Synchronized).status);
}

#[test]
fn a_power_order_that_fails_is_given_again_and_not_for_ever() {
    let mut world = running();
    world.ok(hold("job", true));
    for _ in 0..STEP_ATTEMPTS_MAX {
        assert!(!world.condition(1, ClaimConditionKind::Synchronized).status);
        world.bmc(BmcAction::PowerOff, Some("the BMC is away"));
    }
    assert!(world.open_orders().is_empty());
    let synchronized = world.condition(1, ClaimConditionKind::Synchronized);
    assert_eq!(synchronized.reason, "PowerFailed");
    // Another wish begins anew.
    world.ok(hold("job", false));
    assert!(world.condition(1, ClaimConditionKind::Synchronized).status);
    world.ok(hold("job", true));
    world.bmc(BmcAction::PowerOff, None);
    assert!(world.condition(1, ClaimConditionKind::Synchronized).status);
}

#[test]
fn holds_of_a_host_outlive_its_claims() {
    let mut world = running();
    world.ok(by(HoldActor::Remediation, "job", true));
    world.bmc(BmcAction::PowerOff, None);
    world.ok(deletion(1, 1));
    world.reclaimed(1, "zero");
    assert_eq!(world.state(1), ClaimState::Gone);
    assert_eq!(world.pool_host(1).holds.len(), 1);
    world.ok(claim(2, 1, installing(&[])));
    world.installed_claim(2);
    world.bmc(BmcAction::PowerOff, None);
    assert!(world.claim(2).power.is_off);
}

#[test]
fn commands_of_an_earlier_epoch_are_refused_and_its_orders_not_sent() {
    let mut world = running();
    let epoch = |epoch| UpdateClaim {
        epoch: Some(epoch),
        ..intent(1, installing(&["a=b"]))
    };
    assert_eq!(world.refused(epoch(2)), ErrorCode::Conflict);
    world.ok(epoch(1));
    world.ok(reboot("r-1"));
    let order = world
        .tables
        .all::<BmcOrder>()
        .find(|order| order.action == BmcAction::PowerReset)
        .cloned()
        .unwrap();
    assert_eq!(order.epoch, 1);
    // Deleted and bound to another claim: the order is withdrawn, and would not be sent either.
    world.ok(deletion(1, 1));
    world.reclaimed(1, "zero");
    world.ok(claim(2, 2, ClaimSpec::default()));
    assert_eq!(world.pool_host(1).epoch, 2);
    let open = BmcOrder {
        state: OrderState::Open,
        ..BmcOrder::clone(&order)
    };
    let record = Record::BmcOrder(open.into());
    world
        .tables
        .load(Kind::BmcOrder, &record.encode().unwrap(), 1)
        .unwrap();
    let sent = life::bmc_desired(&world.tables, &text(PARTITION));
    assert!(sent.is_empty(), "{sent:?}");
    // Nor does an agent of the published stack get it, which looked before the binding.
    let taken = TakeBmcOrder {
        id: order.id,
        partition: text(PARTITION),
        stream: BmcStream {
            node: 1,
            id: uuid::Uuid::from_u128(1),
        },
        open: [].into(),
    };
    assert_eq!(world.refused(taken), ErrorCode::Conflict);
    for refused in [
        world.refused(DeleteClaim {
            epoch: Some(1),
            id: claim_id(2),
            project: id(2),
        }),
        world.refused(RebootClaim {
            epoch: Some(1),
            id: claim_id(2),
            project: id(2),
            ..reboot("r")
        }),
        world.refused(HoldClaim {
            epoch: Some(1),
            id: claim_id(2),
            project: id(2),
            ..hold("job", true)
        }),
    ] {
        assert_eq!(refused, ErrorCode::Conflict);
    }
}

#[test]
fn a_boot_ticket_of_an_earlier_epoch_is_not_redeemed() {
    let mut world = World::hosting(&[&[]]);
    world.ok(issue_ticket(&world, 1));
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(life::machine_epoch(&world.tables, id(1)), 1);
    assert_eq!(world.refused(redeem(1)), ErrorCode::TicketForeign);
    world.ok(issue_ticket(&world, 2));
    world.ok(redeem(2));
}

#[test]
fn what_is_told_of_an_earlier_epoch_changes_nothing() {
    let mut world = running();
    world.ok(reboot("r-1"));
    let partition: PartitionId = text(PARTITION);
    let order = life::bmc_desired(&world.tables, &partition)[0].id;
    let earlier = world.machine(1).allocation.clone().unwrap();
    world.ok(deletion(1, 1));
    world.reclaimed(1, "zero");
    world.ok(claim(2, 2, asking(&[])));
    let (claim, host) = (world.claim(2).clone(), world.pool_host(1).clone());
    assert_eq!((host.epoch, claim.state), (2, ClaimState::Bound));
    // The BMC agent tells the end of the reboot late, hammer that of the installation, and the system
    // that it runs.
    world.ok(BmcOrderDone {
        id: order,
        partition,
        error: None,
        power_state: None,
        nonce: None,
    });
    let told = InstallDone {
        allocation: earlier.id,
        ..installed(1, 0)
    };
    assert_eq!(world.refused(told), ErrorCode::MachineNotAllocated);
    let told = PhoneHome {
        id: id(1),
        project: earlier.project,
        message: String::new(),
        time: world.now,
    };
    assert_eq!(world.refused(told), ErrorCode::MachineForeign);
    assert_eq!(world.claim(2), &claim);
    assert_eq!(world.pool_host(1), &host);
    assert_eq!(world.open_orders(), []);
}

/// The certificate of the installed system, and what a project could do with it.
#[test]
fn credentials_of_a_claims_host_end_with_its_binding() {
    let mut world = running();
    let allocation = world.machine(1).allocation.as_ref().unwrap().id;
    let number = allocation.uuid().as_u128();
    world.ok(certificate(&world, "aa", Some(number)));
    let is_good = |world: &World| query::is_certificate_good(&world.tables, "aa", world.now);
    assert!(is_good(&world));
    world.ok(deletion(1, 1));
    assert!(!is_good(&world), "before the host is wiped");
    world.reclaimed(1, "zero");
    world.ok(claim(2, 1, installing(&[])));
    assert_eq!(
        world.refused(certificate(&world, "bb", Some(number))),
        ErrorCode::MachineNotAllocated
    );
}
