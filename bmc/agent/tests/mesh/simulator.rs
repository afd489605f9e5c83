//! OpenIPMI's BMC simulator in front of a machine that is a few files.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) const PASSWORD: &str = "labpass";

/// A running simulator; it ends with the test.
pub(crate) struct Simulator {
    child: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
}

impl Simulator {
    /// `None`, with a printed reason, where OpenIPMI is missing.
    pub(crate) fn start(uuid: &str) -> Option<Self> {
        let mut probe = Command::new("ipmi_sim");
        probe.arg("-h").stdout(Stdio::null()).stderr(Stdio::null());
        if probe.status().is_err() {
            eprintln!("SKIPPED: ipmi_sim (Debian package openipmi) is missing");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        write_config(folder.path(), port, &uuid.replace('-', ""));
        let path = |name: &str| folder.path().join(name);
        let child = Command::new("ipmi_sim")
            .arg("-c")
            .arg(path("lan.conf"))
            .arg("-f")
            .arg(path("commands.emu"))
            .arg("-s")
            .arg(path("state"))
            .arg("-n")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self {
            child,
            port,
            folder,
        })
    }

    /// What the simulator told the machine, one line each.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("control.log")).unwrap_or_default()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn write_config(folder: &Path, port: u16, guid: &str) {
    let control = format!(
        "#!/bin/sh\ncd {}\n[ \"$1\" = set ] && echo \"$@\" >>control.log\n\
         case \"$1 $2\" in\n\
         'get power') echo \"power:$(cat power 2>/dev/null || echo 0)\";;\n\
         'get boot') echo \"boot:$(cat boot 2>/dev/null || echo none)\";;\n\
         'set power') echo \"$3\" >power;;\n\
         'set boot') echo \"$3\" >boot;;\n\
         esac\nexit 0\n",
        folder.display()
    );
    let program = folder.join("control");
    fs::write(&program, control).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let auths = "none md2 md5 straight";
    let lan = format!(
        "name \"test\"\nset_working_mc 0x20\nstartlan 1\naddr 127.0.0.1 {port}\npriv_limit admin\n\
         allowed_auths_callback {auths}\nallowed_auths_user {auths}\n\
         allowed_auths_operator {auths}\nallowed_auths_admin {auths}\n\
         guid {guid}\nendlan\nchassis_control \"{}\"\npoweroff_wait 1\nkill_wait 1\n\
         user 1 false \"\" \"test\" user 10 {auths}\n\
         user 2 true \"admin\" \"{PASSWORD}\" admin 10 {auths}\n",
        program.display()
    );
    fs::write(folder.join("lan.conf"), lan).unwrap();
    // Two power supplies, of which the second has failed (specification, 43.2 and table 42-3).
    let commands = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\n\
        main_sdr_add 0x20 0x00 0x00 0x51 0x02 0x1e 0x20 0x00 0x20 0x0a 0x01 0x67 0x40 0x08 0x6f \
        0xff 0x7f 0xff 0x7f 0xff 0x7f 0xc0 0x00 0x00 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0xc3 \
        0x50 0x53 0x31\n\
        main_sdr_add 0x20 0x00 0x00 0x51 0x02 0x1e 0x20 0x00 0x21 0x0a 0x02 0x67 0x40 0x08 0x6f \
        0xff 0x7f 0xff 0x7f 0xff 0x7f 0xc0 0x00 0x00 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0xc3 \
        0x50 0x53 0x32\n\
        sensor_add 0x20 0 0x20 0x08 0x6f\nsensor_set_bit 0x20 0 0x20 0 1 0\n\
        sensor_add 0x20 0 0x21 0x08 0x6f\nsensor_set_bit 0x20 0 0x21 0 1 0\n\
        sensor_set_bit 0x20 0 0x21 1 1 0\n\
        mc_enable 0x20\n";
    fs::write(folder.join("commands.emu"), commands).unwrap();
}
