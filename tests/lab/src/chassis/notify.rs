//! What sushy-tools' fake driver tells after each change: the whole system, as HTTP PUT of JSON.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::qemu::{Boot, Machine};
use crate::netns;

/// Longest body that is read, bytes.
const BODY_MAX: usize = 1 << 20;
const HEADERS_MAX: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
struct System {
    power_state: String,
    #[serde(default)]
    boot_device: Option<String>,
}

pub(super) fn start(machine: Machine, namespace: &str, port: u16) -> Result<()> {
    let namespace = namespace.to_owned();
    std::thread::Builder::new()
        .name("notify".into())
        .spawn(move || {
            if let Err(error) = serve(&machine, &namespace, port) {
                eprintln!("notify: {error:#}");
            }
        })?;
    Ok(())
}

fn serve(machine: &Machine, namespace: &str, port: u16) -> Result<()> {
    netns::enter(namespace)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    for stream in listener.incoming().flatten() {
        let answer = match receive(&stream).and_then(|system| obey(machine, &system)) {
            Ok(()) => "HTTP/1.1 200 OK",
            Err(error) => {
                eprintln!("notify: {error:#}");
                "HTTP/1.1 500 Internal Server Error"
            }
        };
        // A front that went away learns nothing; its next change comes anyway.
        drop(write!(
            &stream,
            "{answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ));
    }
    Ok(())
}

fn receive(stream: &TcpStream) -> Result<System> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for _ in 0..HEADERS_MAX {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().context("content-length")?;
        }
    }
    if length > BODY_MAX {
        bail!("a body of {length} bytes");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

fn obey(machine: &Machine, system: &System) -> Result<()> {
    match system.boot_device.as_deref() {
        Some("Pxe" | "UefiHttp") => machine.set_boot(Boot::Pxe)?,
        Some(_) => machine.set_boot(Boot::Disk)?,
        None => {}
    }
    if system.power_state == "On" {
        machine.on()
    } else {
        machine.off()
    }
}
