//! A switch: a namespace with FRR, driven by the back-end.

use std::time::{Duration, Instant};

use agents_nos::frr::Vtysh;
use agents_nos::linux::{Config, FilterConfig, Linux};
use agents_nos::{Nos, Problem, SwitchModel, fit, plan};

use super::daemons::{self, DEADLINE, Switch};
use super::hosts::inside;

/// Pause before steps that have failed are applied again.
const PAUSE: Duration = Duration::from_millis(250);

/// `false`, with a printed reason, where something is missing.
pub(crate) fn is_available() -> bool {
    if !daemons::is_available() {
        return false;
    }
    let made = std::process::Command::new("ip")
        .args("link add mmvrfprobe type vrf table 4242".split(' '))
        .stderr(std::process::Stdio::null())
        .status();
    if !made.unwrap().success() {
        eprintln!("SKIPPED: this kernel has no VRFs (CONFIG_NET_VRF)");
        return false;
    }
    daemons::ip("link del mmvrfprobe");
    true
}

/// The back-end of a switch. To be called inside its namespace.
pub(crate) fn open(name: &str) -> Linux {
    open_with(name, FilterConfig::default())
}

/// The same with the site's part of the packet filter.
pub(crate) fn open_with(name: &str, filter: FilterConfig) -> Linux {
    let vtysh = Vtysh {
        command: ["vtysh", "-N", name].map(str::to_owned).to_vec(),
        ..Vtysh::default()
    };
    Linux::open(Config {
        ports: vec!["swp*".into()],
        vtep: [0, 0, 0, 0].into(),
        frr: Some(vtysh),
        filter,
    })
    .unwrap()
}

/// Runs the back-end of a switch beside its daemons, as the agent does, to the end of the test.
pub(crate) fn run_back_end(switch: &Switch) {
    let name = switch.name.clone();
    std::thread::spawn(move || {
        inside(&name.clone(), async move || {
            let _back_end = open(&name);
            std::future::pending::<()>().await;
        });
    });
}

/// Brings a switch to a state and checks that it is there: what is observed is what is desired,
/// and a second plan is empty.
pub(crate) fn reconcile(switch: &Switch, desired: &SwitchModel) {
    let (name, desired) = (switch.name.clone(), desired.clone());
    inside(&switch.name, async move || {
        let back_end = open(&name);
        let until = Instant::now() + DEADLINE;
        let capabilities = back_end.capabilities();
        loop {
            let observed = back_end.observe().await.unwrap().model;
            let todo = plan(&observed, &desired, capabilities);
            assert_eq!(todo.problems, Vec::<Problem>::new(), "{name}");
            if todo.steps.is_empty() {
                assert_eq!(observed, fit(&observed, &desired, capabilities).model);
                return;
            }
            if let Err(error) = back_end.apply_all(&todo.steps).await {
                if Instant::now() >= until {
                    for look in ["show bgp vrf all summary", "show running-config"] {
                        println!("{name}# {look}\n{}", daemons::vtysh(&name, look));
                    }
                    panic!("{name}: {error:#?}");
                }
                println!("{name}: again after {error:?}");
                // Not a loop without pause: it would take a processor from FRR.
                std::thread::park_timeout(PAUSE);
            }
        }
    });
}

/// The observed state of a switch.
pub(crate) fn observe(switch: &Switch) -> SwitchModel {
    let name = switch.name.clone();
    inside(&switch.name, async move || {
        open(&name).observe().await.unwrap().model
    })
}
