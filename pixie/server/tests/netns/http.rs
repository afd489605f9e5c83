use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use pixie_boot::Target;

use crate::dhcp_client::lease;
use crate::running_pixie::Running;
use crate::world::*;

/// Longer than any wait of a test that works.
const PATIENCE: Duration = Duration::from_secs(20);
const SCRIPT: &str = "/v1/boot.ipxe?mac=52-54-00-99-01-01";

fn boot(world: &World) -> (u16, String) {
    world.curl(
        &format!("{SCRIPT}&uuid={UUID}&platform=efi&buildarch=x86_64"),
        &[],
    )
}

fn ticket(world: &World) -> (u16, String) {
    let body = format!("{{\"uuid\":\"{UUID}\",\"mac\":\"{MAC}\"}}");
    world.curl("/v1/ticket", &["-i", "-d", &body])
}

#[test]
fn a_machine_is_identified_and_boots_what_control_says() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let pixie = Running::start(&world, world.server_config());
    world.set_address(lease(&world, &[]).yiaddr);
    let (status, identify) = world.curl(SCRIPT, &[]);
    assert_eq!(status, 200);
    assert!(identify.contains("&uuid=${uuid}"), "{identify}");
    pixie.set_target(Target::Disk);
    let (_, unknown_to_control) = boot(&world);
    assert!(
        unknown_to_control.contains("sanboot"),
        "{unknown_to_control}"
    );
    *pixie.control.target.lock().unwrap() = Some(Target::Hammer);
    let (_, hammer) = boot(&world);
    assert!(
        hammer.contains("metalmesh.pixie=http://10.99.1.2:8080"),
        "{hammer}"
    );
    assert!(
        hammer.contains("metalmesh.mac=52:54:00:99:01:01"),
        "{hammer}"
    );
    assert!(hammer.contains("extra=1"), "{hammer}");
    *pixie.control.target.lock().unwrap() = Some(Target::Nothing);
    let (_, held) = boot(&world);
    assert!(held.contains("held out of service"), "{held}");
    let seen = pixie.control.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 3);
    assert_eq!((seen[0].mac, seen[0].arch), (MAC, 7));
}

#[test]
fn a_machine_cannot_boot_as_another() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let pixie = Running::start(&world, world.server_config());
    world.set_address(lease(&world, &[]).yiaddr);
    pixie.set_target(Target::Hammer);
    let victim = "6f1c0001-0000-4000-8000-0000000000ff";
    let (_, script) = world.curl(&format!("{SCRIPT}&uuid={victim}"), &[]);
    assert!(
        script.contains("nothing to boot: card 52:54:00:99:01:01"),
        "{script}"
    );
    let body = format!("{{\"uuid\":\"{victim}\",\"mac\":\"{MAC}\"}}");
    assert_eq!(world.curl("/v1/ticket", &["-d", &body]).0, 403);
    assert!(pixie.control.seen.lock().unwrap().is_empty());
}

#[test]
fn only_the_holder_of_the_lease_is_answered() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    world.set_address(Ipv4Addr::new(10, 99, 1, 105));
    assert_eq!(boot(&world).0, 403);
    assert_eq!(ticket(&world).0, 403);
}

#[test]
fn known_machines_boot_while_control_is_away_and_events_wait() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let pixie = Running::start(&world, world.server_config());
    world.set_address(lease(&world, &[]).yiaddr);
    pixie.set_target(Target::Hammer);
    pixie.control.set_away(true);
    assert!(boot(&world).1.contains("/kernel"));
    let (status, refused) = ticket(&world);
    assert_eq!(status, 503, "{refused}");
    assert!(
        refused.to_ascii_lowercase().contains("retry-after: 5"),
        "{refused}"
    );
    let before = world.curl("/healthz", &[]).1;
    assert!(before.contains("\"events_waiting\":1"), "{before}");
    wait_for("the spool on disk", || {
        world.state_dir().join("seen.json").exists()
    });
    pixie.control.set_away(false);
    wait_for("the event", || {
        !pixie.control.seen.lock().unwrap().is_empty()
    });
    let (status, ticket) = ticket(&world);
    assert_eq!(
        status, 200,
        "the right to a ticket was given back: {ticket}"
    );
}

#[test]
fn control_hears_who_was_sent_to_its_disk_without_its_word() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let pixie = Running::start(&world, world.server_config());
    world.set_address(lease(&world, &[]).yiaddr);
    pixie.set_target(Target::Disk);
    let told = || {
        let seen = pixie.control.seen.lock().unwrap();
        seen.iter().map(|seen| seen.to_disk).collect::<Vec<_>>()
    };
    boot(&world);
    assert_eq!(told(), [false], "control was asked");
    pixie.control.set_away(true);
    boot(&world);
    pixie.control.set_away(false);
    wait_for("the event", || told().len() == 2);
    assert_eq!(told(), [false, true]);
}

#[test]
fn a_ticket_goes_once_to_the_machine_that_booted() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let pixie = Running::start(&world, world.server_config());
    world.set_address(lease(&world, &[]).yiaddr);
    pixie.set_target(Target::Hammer);
    let (status, refused) = ticket(&world);
    assert_eq!(status, 403);
    assert!(refused.contains("has not booted"), "{refused}");
    boot(&world);
    let (status, answer) = ticket(&world);
    assert_eq!(status, 200, "{answer}");
    let json: serde_json::Value =
        serde_json::from_str(answer.rsplit_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(json["ticket_id"], "t-1");
    assert_eq!(json["secret"], "AQID");
    assert_eq!(json["roots"][0], "BAU=");
    assert_eq!(json["control"][0], "10.90.0.1:4443");
    assert_eq!(json["machine_uuid"], UUID);
    assert!(json["time_ms"].as_u64().unwrap() > 1_700_000_000_000);
    assert_eq!(ticket(&world).0, 409, "one a boot");
    boot(&world);
    assert_eq!(ticket(&world).0, 200, "another boot, another ticket");
    let other = "{\"uuid\":\"6f1c0001-0000-4000-8000-0000000000ff\",\"mac\":\"52:54:00:99:01:01\"}";
    assert_eq!(
        world.curl("/v1/ticket", &["-d", other]).0,
        403,
        "another machine's"
    );
    for bad in [
        "",
        "{}",
        "{\"uuid\":\"x\",\"mac\":\"y\"}",
        &"a".repeat(5000),
    ] {
        assert_eq!(world.curl("/v1/ticket", &["-d", bad]).0, 400);
    }
    pixie.set_target(Target::Disk);
    boot(&world);
    assert_eq!(ticket(&world).0, 403, "sent to its disk");
    assert_eq!(pixie.control.tickets.lock().unwrap().len(), 2);
}

#[test]
fn an_installer_that_hangs_up_keeps_its_right_to_a_ticket() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let pixie = Running::start(&world, world.server_config());
    world.set_address(lease(&world, &[]).yiaddr);
    pixie.set_target(Target::Hammer);
    boot(&world);
    *pixie.control.is_stuck.lock().unwrap() = true;
    let body = format!("{{\"uuid\":\"{UUID}\",\"mac\":\"{MAC}\"}}");
    let hung_up = world.curl("/v1/ticket", &["-m", "1", "-d", &body]);
    assert_eq!(hung_up.0, 0, "no answer: {}", hung_up.1);
    *pixie.control.is_stuck.lock().unwrap() = false;
    wait_for("the right to a ticket", || ticket(&world).0 == 200);
    assert_eq!(ticket(&world).0, 409, "one a boot");
}

#[test]
fn files_are_served_whole_in_part_and_by_head() {
    if skipped() || !have("curl") {
        return;
    }
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    world.set_address(Ipv4Addr::new(10, 99, 1, 50));
    let got = world.dir.path().join("got");
    let got = got.to_str().unwrap();
    assert_eq!(world.curl("/kernel", &["-o", got]).0, 200);
    assert_eq!(std::fs::read(got).unwrap(), pattern(300_000));
    assert_eq!(world.curl("/kernel", &["-o", got, "-r", "100-299"]).0, 206);
    assert_eq!(std::fs::read(got).unwrap(), pattern(300_000)[100..300]);
    assert_eq!(world.curl("/kernel", &["-o", got, "-r", "300000-"]).0, 416);
    let (status, head) = world.curl("/assets/ipxe.efi", &["-I"]);
    assert_eq!(status, 200);
    assert!(
        head.to_ascii_lowercase().contains("content-length: 1000"),
        "{head}"
    );
    for path in [
        "/assets/../vmlinuz",
        "/assets/%2e%2e/x",
        "/assets/none",
        "/assets/state",
        "/x",
    ] {
        assert_eq!(world.curl(path, &["--path-as-is"]).0, 404, "{path}");
    }
    assert_eq!(world.curl("/kernel", &["-X", "DELETE"]).0, 404);
}

/// One machine of the segment opens connections and says nothing: others boot.
#[test]
fn one_address_leaves_connections_to_others() {
    if skipped() || !have("curl") {
        return;
    }
    const EACH_MAX: usize = 16;
    let world = World::new();
    let _pixie = Running::start(&world, world.server_config());
    world.set_address(lease(&world, &[]).yiaddr);
    let open = || {
        let connect = || TcpStream::connect((PIXIE, 8080)).unwrap();
        let mut silent: Vec<TcpStream> = (0..600).map(|_| connect()).collect();
        let mut ended = 0;
        for stream in silent.iter_mut().skip(EACH_MAX) {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // An end or a reset.
            ended += usize::from(!matches!(stream.read(&mut [0]), Ok(1..)));
        }
        (silent, ended)
    };
    let (silent, ended) = world.in_client(open);
    assert_eq!(ended, 600 - EACH_MAX);
    let refused = world.client(
        "curl",
        &["-s", "-m", "5", &format!("http://{PIXIE}:8080/healthz")],
    );
    assert!(!refused.status.success(), "it has all of its connections");
    let other = "10.99.1.77";
    let add = ["addr", "add", "10.99.1.77/24", "dev", "c0"];
    assert!(world.client("ip", &add).status.success());
    let (status, _) = world.curl("/healthz", &["--interface", other]);
    assert_eq!(status, 200);
    drop(silent);
    let mut again = || world.curl("/healthz", &[]).0 == 200;
    wait_for("its connections to end", &mut again);
}
