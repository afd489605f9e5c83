//! A BMC that opens a session and refuses the privilege.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bmc_ipmi::{Credentials, IpmiError, Session, Timing};

use crate::bmc::{Bmc, PASSWORD, serve};

#[tokio::test]
async fn a_session_without_privilege_is_closed() {
    let closed = Arc::new(AtomicUsize::new(0));
    let bmc = Bmc {
        privilege: 0x81,
        closed: Arc::clone(&closed),
        ..Bmc::default()
    };
    let (address, _tasks) = serve(bmc).await;
    let credentials = Credentials::new("admin", PASSWORD).expect("short enough");
    let opened = Session::connect(address, &credentials, Timing::default()).await;
    assert!(
        matches!(opened, Err(IpmiError::Completion { code: 0x81, .. })),
        "{opened:?}"
    );
    assert_eq!(closed.load(Ordering::Relaxed), 1, "its slot is free again");
}
