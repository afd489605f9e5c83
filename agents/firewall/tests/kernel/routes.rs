//! The distance of routes in the real FRR, in namespaces of its own. Says so and passes without FRR
//! or root.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agents_firewall::routes::{DistanceKeeper, RouteDistance};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const BGPD: &str = "/usr/lib/frr/bgpd";
/// Directory of FRR's sockets.
const SOCKETS: &str = "/run/frr";
const ASN: u32 = 4_210_000_009;
/// Longest wait for FRR: twice the pause between two looks at it, and its start.
const PATIENCE: Duration = Duration::from_secs(40);
/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
const POLL: Duration = Duration::from_millis(10);

/// FRR's daemons. They end with the value.
struct Frr(Vec<Child>);

impl Frr {
    /// Starts FRR as hammer's configuration has it: routes keep as far as they can.
    fn start() -> Self {
        let daemons = ["/usr/lib/frr/zebra", BGPD].map(|program| {
            let mut daemon = Command::new(program);
            daemon.args(["-P", "0", "-f", "/dev/null"]);
            daemon.stdin(Stdio::null()).spawn().unwrap()
        });
        let frr = Self(daemons.into());
        let far = vec![ASN.to_string(); 48].join(" ");
        let until = Instant::now() + PATIENCE;
        while !vtysh(&["show daemons"]).contains("bgpd") {
            assert!(Instant::now() < until, "bgpd does not start");
            std::thread::park_timeout(Duration::from_millis(50));
        }
        vtysh(&[
            "configure terminal",
            "bgp as-path access-list MM-SELF seq 5 permit ^$",
            "route-map MM-EVPN-OUT permit 10",
            "match as-path MM-SELF",
            &format!("set as-path prepend {far}"),
        ]);
        assert_eq!(prepended(), 48);
        frr
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for daemon in &mut self.0 {
            daemon.kill().ok();
            daemon.wait().ok();
        }
    }
}

fn vtysh(commands: &[&str]) -> String {
    let mut program = Command::new("vtysh");
    for command in commands {
        program.args(["-c", command]);
    }
    let output = program.stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Number of AS numbers that bgpd's configuration has in front of paths.
fn prepended() -> usize {
    let running = vtysh(&["show running-config"]);
    let set = running.split_once(" set as-path prepend ");
    let numbers = set.and_then(|(_, rest)| rest.lines().next());
    numbers.map_or(0, |numbers| numbers.split_whitespace().count())
}

async fn await_prepended(wanted: usize) {
    let until = Instant::now() + PATIENCE;
    while prepended() != wanted {
        assert!(
            Instant::now() < until,
            "{} instead of {wanted}",
            prepended()
        );
        tokio::time::sleep(POLL).await;
    }
}

/// Waits until the keeper has seen a distance beside the wanted one.
async fn await_observed(keeper: &DistanceKeeper, wanted: u32) {
    let until = Instant::now() + PATIENCE;
    let seen = |keeper: &DistanceKeeper| {
        let observed = keeper.observed()?;
        assert_eq!(observed.error, "");
        (observed.wanted == wanted).then_some(observed.observed)
    };
    while seen(keeper) != Some(Some(wanted)) {
        assert!(Instant::now() < until, "{:?}", keeper.observed());
        tokio::time::sleep(POLL).await;
    }
}

async fn distance_follows() {
    let frr = Frr::start();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let keeper = DistanceKeeper::start(&mut tasks, stop.clone());
    assert_eq!(keeper.observed(), None);
    for (distance, wanted) in [(0, 0), (1, 6), (0, 0), (2, 12)] {
        keeper.want(RouteDistance::ordered(ASN, distance));
        await_prepended(wanted).await;
        await_observed(&keeper, distance).await;
    }
    // Nothing wanted changes nothing.
    keeper.want(None);
    assert_eq!(prepended(), 12);
    keeper.want(RouteDistance::ordered(ASN, 1));
    await_prepended(6).await;
    // It begins again with the longest distance.
    drop(frr);
    let _frr = Frr::start();
    await_prepended(6).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
}

/// Runs on a thread with namespaces of its own, so that nothing is seen of FRR on this host.
#[test]
fn frr_keeps_the_distance_that_is_wanted() {
    let on_thread = || {
        let own = unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS);
        if own.is_err() || !Path::new(BGPD).exists() {
            println!("not run: the distance of routes needs root and FRR");
            return;
        }
        let none = None::<&Path>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        std::fs::create_dir_all(SOCKETS).unwrap();
        let kind = Some(Path::new("tmpfs"));
        mount(kind, SOCKETS, kind, MsFlags::empty(), none).unwrap();
        let owned = Command::new("chown").args(["frr:frr", SOCKETS]).status();
        assert!(owned.unwrap().success());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(distance_follows());
    };
    std::thread::scope(|scope| scope.spawn(on_thread).join().unwrap());
}
