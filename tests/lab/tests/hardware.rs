//! The lab's hardware alone: a BMC command really switches a machine on, it really tries to boot
//! from the network, and nothing is left when the lab is taken down.
//! Needs root and QEMU; says so and passes without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tests_lab::chassis::{Accelerator, Boot};
use tests_lab::machine::Machine;
use tests_lab::process::output;
use tests_lab::state::{Record, write_private};
use tests_lab::topology::{Topology, bmc_address};
use tests_lab::wait::wait_for;
use tests_lab::{bmc, is_root};

const LIMIT: Duration = Duration::from_secs(60);

struct Lab {
    record: Record,
    topology: Topology,
}

impl Lab {
    fn new() -> Option<Self> {
        let tools = ["qemu-system-x86_64", "ipmi_sim", "ipmitool"];
        let there = |tool: &&str| Command::new(tool).arg("--help").output().is_ok();
        if !is_root() || !tools.iter().all(there) {
            println!("not run: needs root and {tools:?}");
            return None;
        }
        let record = Record::create(Path::new(env!("CARGO_BIN_EXE_lab"))).unwrap();
        let topology = Topology::build(&record).unwrap();
        Some(Self { record, topology })
    }

    fn ipmi(&self, machine: &Machine, arguments: &str) -> String {
        let password = self.record.path("password").unwrap();
        write_private(&password, machine.password.as_bytes()).unwrap();
        let address = bmc_address(machine.number).to_string();
        let mut command = self.topology.admin.command("ipmitool");
        command.args([
            "-I",
            "lanplus",
            "-C",
            "3",
            "-H",
            &address,
            "-U",
            bmc::USER,
            "-f",
        ]);
        command.arg(&password).args(arguments.split(' '));
        output(&mut command).unwrap()
    }

    fn serial(&self, machine: &Machine, sign: &str) {
        wait_for(sign, LIMIT, || {
            let text = std::fs::read(&machine.serial_log).unwrap_or_default();
            Ok(String::from_utf8_lossy(&text).contains(sign).then_some(()))
        })
        .unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let id = self.record.state().id;
        if std::thread::panicking() {
            for process in self.record.state().processes {
                let log = self.record.log(&process.name).unwrap();
                println!("{}: {}", process.name, tests_lab::process::tail(&log));
            }
        }
        self.record.take_down().unwrap();
        self.record.erase().unwrap();
        let left = output(Command::new("ip").args(["netns", "list"])).unwrap();
        assert!(!left.contains(&format!("mm-{id}-")), "left behind: {left}");
    }
}

#[test]
fn ipmi_switches_a_bios_machine() {
    let Some(lab) = Lab::new() else { return };
    let machine = Machine::describe(&lab.record, 1, false).unwrap();
    machine
        .build(&lab.record, &lab.topology, Accelerator::Tcg, None)
        .unwrap();
    assert!(lab.ipmi(&machine, "power status").contains("is off"));
    lab.ipmi(&machine, "chassis bootdev pxe options=persistent");
    assert_eq!(machine.status().unwrap().boot, Boot::Pxe);
    lab.ipmi(&machine, "power on");
    wait_for("power", LIMIT, || Ok(machine.status()?.on.then_some(()))).unwrap();
    assert!(lab.ipmi(&machine, "power status").contains("is on"));
    lab.serial(&machine, "iPXE");
    lab.ipmi(&machine, "power cycle");
    wait_for("cycle", LIMIT, || {
        let status = machine.status()?;
        Ok((status.on && status.powered_on == 2).then_some(()))
    })
    .unwrap();
    lab.ipmi(&machine, "power off");
    wait_for("power", LIMIT, || Ok((!machine.status()?.on).then_some(()))).unwrap();
    assert!(machine.status().unwrap().cpu_s > 0.0);
}

#[test]
fn redfish_switches_an_uefi_machine() {
    let Some(lab) = Lab::new() else { return };
    let cache = std::env::temp_dir().join("metalmesh-test-cache");
    let sushy = match bmc::sushy(&cache) {
        Ok(sushy) => sushy,
        Err(error) => {
            println!("not run: {error:#}");
            return;
        }
    };
    let machine = Machine::describe(&lab.record, 2, true).unwrap();
    machine
        .build(&lab.record, &lab.topology, Accelerator::Tcg, Some(&sushy))
        .unwrap();
    let address = bmc_address(2);
    let netrc = lab.record.path("netrc").unwrap();
    let line = format!(
        "machine {address} login {} password {}\n",
        bmc::USER,
        machine.password
    );
    write_private(&netrc, line.as_bytes()).unwrap();
    let call = |method: &str, path: &str, body: &str| {
        let mut command = lab.topology.admin.command("curl");
        command.args(["-ksS", "--fail", "--netrc-file"]).arg(&netrc);
        command.args([
            "-X",
            method,
            "-H",
            "Content-Type: application/json",
            "-d",
            body,
        ]);
        let url = format!(
            "https://{address}:{}/redfish/v1/Systems/{}{path}",
            bmc::REDFISH_PORT,
            machine.uuid
        );
        output(command.arg(url)).unwrap()
    };
    let order =
        r#"{"Boot":{"BootSourceOverrideTarget":"Pxe","BootSourceOverrideEnabled":"Continuous"}}"#;
    call("PATCH", "", order);
    assert_eq!(machine.status().unwrap().boot, Boot::Pxe);
    call("PATCH", "", r#"{"AssetTag":"mm-a"}"#);
    let told = call("GET", "", "");
    assert!(told.contains(r#""AssetTag": "mm-a""#), "{told}");
    call(
        "POST",
        "/Actions/ComputerSystem.Reset",
        r#"{"ResetType":"On"}"#,
    );
    wait_for("power", LIMIT, || {
        call("GET", "", "");
        Ok(machine.status()?.on.then_some(()))
    })
    .unwrap();
    lab.serial(&machine, "PXE");
    call(
        "POST",
        "/Actions/ComputerSystem.Reset",
        r#"{"ResetType":"ForceOff"}"#,
    );
    wait_for("power", LIMIT, || {
        call("GET", "", "");
        Ok((!machine.status()?.on).then_some(()))
    })
    .unwrap();
}
