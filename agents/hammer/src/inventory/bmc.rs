//! The machine's own BMC, queried in band by IPMI. Best effort: missing answers stay empty.

use std::time::Duration;

use crate::cmd::Cmd;

/// Longest time of one query. A BMC that hangs must not keep the machine from registering.
const ASK_LIMIT: Duration = Duration::from_secs(10);

/// The BMC's own data. Empty fields are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bmc {
    /// IPv4 address of its LAN channel. Empty also if it has none yet (0.0.0.0).
    pub address: String,
    /// MAC address of its LAN channel, lower case with colons.
    pub mac: String,
    /// Firmware version.
    pub version: String,
}

pub(super) async fn ask() -> Bmc {
    let lan = Cmd::new("ipmitool", ["lan", "print"]).run(ASK_LIMIT).await;
    let info = Cmd::new("ipmitool", ["mc", "info"]).run(ASK_LIMIT).await;
    for error in [&lan, &info].into_iter().filter_map(|r| r.as_ref().err()) {
        tracing::warn!(%error, "BMC does not answer in band");
    }
    parse(&lan.unwrap_or_default(), &info.unwrap_or_default())
}

fn parse(lan: &str, info: &str) -> Bmc {
    let address = field(lan, "IP Address");
    Bmc {
        address: if address == "0.0.0.0" {
            String::new()
        } else {
            address
        },
        mac: field(lan, "MAC Address").to_lowercase(),
        version: field(info, "Firmware Revision"),
    }
}

/// The value of a line such as `IP Address              : 10.90.0.101`. Empty if there is none.
fn field(text: &str, name: &str) -> String {
    text.lines()
        .filter_map(|l| l.split_once(':'))
        // The whole key: `IP Address Source` comes before `IP Address` in ipmitool's output.
        .find(|(key, _)| key.trim() == name)
        .map_or_else(String::new, |(_, value)| value.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ipmitool_prints() {
        let lan = "IP Address Source       : Static Address\n\
                   IP Address              : 10.90.0.101\n\
                   MAC Address             : 52:54:00:AA:BB:CC\n";
        let info = "Device ID                 : 0\nFirmware Revision         : 9.8\n";
        let bmc = parse(lan, info);
        assert_eq!(bmc.address, "10.90.0.101");
        assert_eq!(
            (bmc.mac.as_str(), bmc.version.as_str()),
            ("52:54:00:aa:bb:cc", "9.8")
        );
        assert_eq!(parse("IP Address : 0.0.0.0", ""), Bmc::default());
    }
}
