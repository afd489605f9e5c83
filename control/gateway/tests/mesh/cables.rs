//! Machines that lie about their cable, and leaves that lie about their neighbours.

use control_state::{AgentKind, Machine, Switch, life};
use proto_mesh::*;

use crate::catalogue::{allocate, catalogue};
use crate::fixture::*;
use crate::hammer::{boot_as, hear, inventory_at};

const VICTIM: (&str, &str) = ("0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f", "52:54:00:00:00:01");
const LIAR: (&str, &str) = ("0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e70", "52:54:00:00:00:02");

fn links(control: &Control, uuid: &str) -> Vec<String> {
    let id = uuid.parse().unwrap();
    let read = control.store.read_local(|tables| {
        let links = &tables.get::<Machine>(&id).unwrap().links;
        let text = links.iter().map(|it| format!("{} {}", it.switch, it.port));
        text.collect()
    });
    read.unwrap()
}

fn vni(control: &Control, switch: &str, port: &str) -> u32 {
    let id = switch.parse().unwrap();
    let read = control.store.read_local(|tables| {
        let switch = tables.get::<Switch>(&id).unwrap();
        life::port_vni(tables, switch, port).get()
    });
    read.unwrap()
}

async fn leaf(control: &Control, name: &str) -> SwitchServiceClient {
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", name).await;
    let port = |n: u32| SwitchPort {
        name: format!("swp{n}"),
        mac: String::new(),
    };
    let ports = (1..=4).map(port).collect();
    core.register(SwitchRegisterRequest {
        ports,
        ..Default::default()
    })
    .await
    .unwrap();
    core
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_a_tenants_port_by_a_lie() {
    let control = Control::start().await;
    let (project, network) = catalogue(&control).await;
    let (leaf1, leaf2) = (leaf(&control, "leaf1").await, leaf(&control, "leaf2").await);
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let hammer = boot_as(&control, &pixie, VICTIM.0, VICTIM.1).await;
    let inventory = inventory_at("boot-1", VICTIM.1, "swp1");
    hammer.register(inventory).await.unwrap();
    assert!(links(&control, VICTIM.0).is_empty(), "only it says so");
    // The leaf hears it, whenever that is.
    hear(&leaf1, "swp1", &[VICTIM.1]).await;
    assert_eq!(links(&control, VICTIM.0), ["leaf1 swp1"]);
    let wiped = DiskWipe {
        name: "/dev/vda".into(),
        serial: "d1".into(),
        ..Default::default()
    };
    let disks = vec![wiped];
    hammer.wipe_done(WipeReport { disks }).await.unwrap();
    let waits = MachineEvent {
        event: "Waiting".into(),
        ..Default::default()
    };
    hammer.event(waits).await.unwrap();
    allocate(&control, project, &network).await;

    // An invented machine claims every port that there is, with a card each.
    let liar = boot_as(&control, &pixie, LIAR.0, LIAR.1).await;
    let mut all = inventory_at("boot-1", LIAR.1, "swp1");
    for n in 2..=4 {
        let mac = format!("52:54:00:00:01:0{n}");
        let mut nics = inventory_at("boot-1", &mac, &format!("swp{n}")).nics;
        all.nics.append(&mut nics);
    }
    liar.register(all).await.unwrap();
    assert!(links(&control, LIAR.0).is_empty());
    hear(&leaf1, "swp3", &["52:54:00:00:01:03"]).await;
    assert_eq!(links(&control, LIAR.0), ["leaf1 swp3"]);
    // It has the tenant's address, and sends its frames.
    let stolen = inventory_at("boot-2", VICTIM.1, "swp1");
    liar.register(stolen).await.unwrap();
    assert!(links(&control, LIAR.0).is_empty());
    assert_eq!(links(&control, VICTIM.0), ["leaf1 swp1"]);

    // A leaf says that it hears the tenant's machine, and another that somebody else is there.
    hear(&leaf2, "swp1", &[VICTIM.1]).await;
    hear(&leaf1, "swp1", &[LIAR.1]).await;
    let claim = inventory_at("boot-3", LIAR.1, "swp1");
    liar.register(claim).await.unwrap();
    assert!(links(&control, LIAR.0).is_empty());
    assert_eq!(links(&control, VICTIM.0)[0], "leaf1 swp1");
    let victim = control.machine(VICTIM.0.parse().unwrap());
    let tenants = victim.allocation.as_ref().unwrap().tenant_vrf().unwrap();
    assert_ne!(vni(&control, "leaf2", "swp1"), tenants);
    control.stop().await;
}
