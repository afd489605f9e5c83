//! The wire between a machine's KCS interface and its BMC, across namespaces.
//!
//! QEMU runs where its switch port is, ipmi_sim where its BMC's address is. A Unix socket is seen
//! from everywhere; one thread in the BMC's namespace carries the bytes to ipmi_sim's TCP port.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use anyhow::Result;

use crate::netns;

pub(super) fn start(socket: &Path, namespace: &str, port: u16) -> Result<()> {
    drop(fs::remove_file(socket));
    let listener = UnixListener::bind(socket)?;
    let namespace = namespace.to_owned();
    std::thread::Builder::new()
        .name("kcs".into())
        .spawn(move || {
            if let Err(error) = netns::enter(&namespace) {
                eprintln!("kcs: {error:#}");
                return;
            }
            // One machine, one wire: QEMU connects again when this one breaks.
            for guest in listener.incoming().flatten() {
                if let Err(error) = carry(&guest, port) {
                    eprintln!("kcs: {error}");
                }
            }
        })?;
    Ok(())
}

fn carry(guest: &UnixStream, port: u16) -> io::Result<()> {
    let bmc = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    bmc.set_nodelay(true)?;
    let (guest_in, bmc_out) = (guest.try_clone()?, bmc.try_clone()?);
    let up = std::thread::Builder::new()
        .name("kcs-up".into())
        .spawn(move || {
            let result = io::copy(&mut &guest_in, &mut &bmc_out);
            drop(bmc_out.shutdown(Shutdown::Both));
            result
        })?;
    let down = io::copy(&mut &bmc, &mut &*guest);
    drop(guest.shutdown(Shutdown::Both));
    drop(up.join());
    down.map(|_| ())
}
