//! Pixie on a real cable: real sockets in network namespaces, and peers that are not ours
//! (udhcpc, curl, tftp).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where its ground is missing"
)]

mod dhcp;
mod dhcp_client;
mod file_server;
mod firmware;
mod http;
mod installer;
mod installer_site;
mod relay;
#[path = "../../../../agents/update/tests/replacing/mod.rs"]
mod replacing;
mod running_pixie;
mod tftp;
mod update;
mod world;
