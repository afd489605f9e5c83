//! Orders that agents of the published stack take on streams: each goes to one stream.

use std::collections::BTreeSet;

use control_state::*;
use uuid::Uuid;

use crate::world::*;

const FIRST: BmcStream = BmcStream {
    node: 1,
    id: Uuid::from_u128(1),
};
const SECOND: BmcStream = BmcStream {
    node: 1,
    id: Uuid::from_u128(2),
};
/// Served by another control node.
const ELSEWHERE: BmcStream = BmcStream {
    node: 2,
    id: Uuid::from_u128(3),
};

fn ordered(world: &mut World, action: BmcAction) -> BmcOrder {
    let order = OrderBmc {
        user: None,
        machine: id(1),
        project: None,
        action,
        description: String::new(),
    };
    BmcOrder::clone(&world.ok(order).bmc_order().unwrap())
}

fn take(order: &BmcOrder, stream: BmcStream, open: &[BmcStream]) -> TakeBmcOrder {
    TakeBmcOrder {
        id: order.id,
        partition: text(PARTITION),
        stream,
        open: open.iter().map(|stream| stream.id).collect::<BTreeSet<_>>(),
    }
}

#[test]
fn one_stream_gets_an_order_until_it_ends() {
    let mut world = World::new();
    world.waiting(1);
    let order = ordered(&mut world, BmcAction::PowerCycle);
    let both = [FIRST, SECOND];
    world.ok(take(&order, FIRST, &both));
    world.ok(take(&order, FIRST, &both));
    assert_eq!(
        world.refused(take(&order, SECOND, &both)),
        ErrorCode::Conflict
    );
    // Another control node does not know which streams ended.
    let by_other = take(&order, ELSEWHERE, &[ELSEWHERE]);
    assert_eq!(world.refused(by_other), ErrorCode::Conflict);
    let foreign = TakeBmcOrder {
        partition: text("elsewhere"),
        ..take(&order, SECOND, &[SECOND])
    };
    assert_eq!(world.refused(foreign), ErrorCode::MachineForeign);
    // The next order of the machine waits for the same stream: they have a sequence.
    let next = ordered(&mut world, BmcAction::LedOn);
    assert_eq!(
        world.refused(take(&next, SECOND, &both)),
        ErrorCode::Conflict
    );
    world.ok(take(&order, SECOND, &[SECOND]));
    world.ok(take(&next, SECOND, &[SECOND]));
    world.bmc(BmcAction::PowerCycle, None);
    let late = take(&order, SECOND, &[SECOND]);
    assert_eq!(world.refused(late), ErrorCode::Conflict, "it is over");
    world.bmc(BmcAction::LedOn, None);
    let after = ordered(&mut world, BmcAction::LedOff);
    world.ok(take(&after, ELSEWHERE, &[ELSEWHERE]));
}
