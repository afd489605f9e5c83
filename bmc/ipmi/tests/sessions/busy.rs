//! A BMC that is too busy to answer.

use std::time::{Duration, Instant};

use bmc_ipmi::{Credentials, IpmiError, Session, Timing};

use crate::bmc::{BUSY, Bmc, PASSWORD, serve};

async fn connect(busy: Duration, tries: u32) -> Result<Session, IpmiError> {
    let bmc = Bmc {
        busy_until: Some(Instant::now() + busy),
        ..Bmc::default()
    };
    let (address, _tasks) = serve(bmc).await;
    let credentials = Credentials::new("admin", PASSWORD).expect("short enough");
    let timing = Timing {
        answer: Duration::from_secs(5),
        tries,
    };
    let mut session = Session::connect(address, &credentials, timing).await?;
    // Privilege again: the session answers.
    session.request(0x06, 0x3b, &[4], "the privilege").await?;
    Ok(session)
}

#[tokio::test]
async fn a_busy_bmc_is_not_taken_for_an_old_one() {
    let opened = connect(Duration::from_secs(3600), 2).await;
    assert!(
        matches!(opened, Err(IpmiError::Completion { code: BUSY, .. })),
        "{opened:?}"
    );
}

#[tokio::test]
async fn a_bmc_that_is_busy_for_a_moment_is_waited_for() {
    let opened = connect(Duration::from_millis(150), 4).await;
    assert!(opened.is_ok(), "{opened:?}");
}
