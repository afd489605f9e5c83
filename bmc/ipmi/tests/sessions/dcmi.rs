//! DCMI's power reading, asked by our client and by ipmitool, which is not ours.

use std::net::SocketAddr;
use std::process::Stdio;

use bmc_ipmi::power::PowerReading;
use bmc_ipmi::{Credentials, IpmiError, Session, Timing};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::bmc::{Bmc, PASSWORD, serve};

const READING: PowerReading = PowerReading {
    current_w: 230,
    min_w: 198,
    max_w: 305,
    average_w: 241,
    period_ms: 1_200_000,
    is_active: true,
};

async fn measuring(reading: Option<PowerReading>) -> (SocketAddr, JoinSet<()>) {
    serve(Bmc {
        reading,
        ..Bmc::default()
    })
    .await
}

async fn read(reading: Option<PowerReading>) -> Result<Option<PowerReading>, IpmiError> {
    let (address, _tasks) = measuring(reading).await;
    let credentials = Credentials::new("admin", PASSWORD).expect("short enough");
    let mut session = Session::connect(address, &credentials, Timing::default()).await?;
    let read = session.power_reading().await;
    session.close().await?;
    read
}

#[tokio::test]
async fn a_bmc_tells_what_it_measures_or_that_it_does_not() {
    let read_back = read(Some(READING)).await.expect("a reading");
    assert_eq!(read_back, Some(READING));
    let idle = PowerReading {
        is_active: false,
        ..READING
    };
    assert_eq!(read(Some(idle)).await.expect("an answer"), None);
    let without = read(None).await;
    assert!(
        matches!(without, Err(IpmiError::Completion { code: 0xc1, .. })),
        "{without:?}"
    );
}

/// The numbers are where another project's client looks for them.
#[tokio::test]
async fn ipmitool_reads_the_same() {
    let (address, _tasks) = measuring(Some(READING)).await;
    let mut ipmitool = Command::new("ipmitool");
    ipmitool
        .args(["-I", "lanplus", "-C", "17", "-H", "127.0.0.1", "-p"])
        .arg(address.port().to_string())
        .args(["-U", "admin", "-P", PASSWORD, "dcmi", "power", "reading"])
        .stdin(Stdio::null());
    let Ok(output) = ipmitool.output().await else {
        eprintln!("SKIPPED: ipmitool (Debian package of that name) is missing");
        return;
    };
    let told = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = told.split_whitespace().collect();
    let told_line = words.join(" ");
    for expected in [
        "Instantaneous power reading: 230 Watts",
        "Minimum during sampling period: 198 Watts",
        "Maximum during sampling period: 305 Watts",
        "Average power reading over sample period: 241 Watts",
        "Power reading state is: activated",
    ] {
        assert!(told_line.contains(expected), "{expected}: {output:?}");
    }
}
