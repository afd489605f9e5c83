//! A boot from the network, as firmware and iPXE do it: DHCP, TFTP, scripts by HTTP, the ticket.

use std::net::Ipv4Addr;
use std::time::Duration;

use agents_hammer::ticket::{self, Ticket};
use anyhow::{Context, Result, bail};
use proto_wire_dhcp::code;
use tokio::time::{Instant, sleep};

use crate::machine::Machine;
use crate::relay::{Asker, Relay};
use crate::world::World;
use crate::{http, tftp};

/// Firmware looks so often whether it has a link to the boot server.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Between two questions for a ticket, and how many there are.
const TICKET_AGAIN: Duration = Duration::from_millis(500);
const TICKET_TRIES: u32 = 120;
/// Refusals that may be about a moment that has passed.
const REFUSALS_MAX: u32 = 5;

/// What the boot server said.
#[derive(Debug)]
pub(crate) enum Booted {
    /// The installer started and has its ticket.
    Hammer(Ticket),
    Disk,
    Nothing,
}

/// Boots a machine from the network.
///
/// # Errors
/// What did not work; firmware tries again.
pub(crate) async fn boot(world: &World, machine: &Machine) -> Result<Booted> {
    let plan = &machine.plan;
    let fabric = world
        .fabrics
        .get(plan.partition)
        .context("no such partition")?;
    let relay = world
        .relays
        .get(plan.partition)
        .context("no such partition")?;
    // A port in another segment is a network without anybody in it.
    if !fabric.is_provisioning(plan) {
        let note = "waits for its port to be in the provisioning segment";
        world.truth.note(plan.number, note);
        while !fabric.is_provisioning(plan) {
            sleep(LOOK_AGAIN).await;
        }
    }
    world.truth.note(plan.number, "boots from the network");
    let began = Instant::now();
    let (script, from) = load(world, machine, relay).await?;
    let booted = obey(machine, relay, &script, from).await?;
    if matches!(booted, Booted::Hammer(_)) {
        world.truth.note(plan.number, "has its boot ticket");
    }
    world.times.add("network boot", began.elapsed());
    Ok(booted)
}

/// Firmware loads iPXE, iPXE its script.
async fn load(world: &World, machine: &Machine, relay: &Relay) -> Result<(String, Ipv4Addr)> {
    let plan = &machine.plan;
    let [cable, _] = &plan.cables;
    let ack = relay.lease(cable.mac, plan.uuid, Asker::Firmware).await?;
    let server = ack
        .options
        .text(code::TFTP_SERVER)
        .context("no TFTP server")?;
    let server: Ipv4Addr = server.parse().context("TFTP server")?;
    let file = ack.options.text(code::BOOT_FILE).context("no boot file")?;
    tftp::read(ack.yiaddr, (server, world.ports.tftp).into(), &file).await?;

    let ack = relay.lease(cable.mac, plan.uuid, Asker::Ipxe).await?;
    let from = ack.yiaddr;
    let url = ack.options.text(code::BOOT_FILE).context("no script")?;
    let script = text(http::get(from, &url).await?);
    let Some(chained) = word_after(&script, "chain --replace ") else {
        return Ok((script, from));
    };
    let url = chained
        .replace("${uuid}", &plan.uuid.to_string())
        .replace("${platform}", "efi")
        .replace("${buildarch}", "x86_64");
    Ok((text(http::get(from, &url).await?), from))
}

/// Does what the last script says.
async fn obey(machine: &Machine, relay: &Relay, script: &str, from: Ipv4Addr) -> Result<Booted> {
    if script.contains("nothing to boot") {
        return Ok(Booted::Nothing);
    }
    let Some(kernel) = word_after(script, "\nkernel ") else {
        return Ok(Booted::Disk);
    };
    http::get(from, kernel).await?;
    let initrd = word_after(script, "initrd --name initrd.img ").context("no initrd")?;
    http::get(from, initrd).await?;
    let pixie = word_after(script, "metalmesh.pixie=").context("no metalmesh.pixie")?;
    let [cable, _] = &machine.plan.cables;
    let ack = relay
        .lease(cable.mac, machine.plan.uuid, Asker::Hammer)
        .await?;
    Ok(Booted::Hammer(ticket(machine, pixie, ack.yiaddr).await?))
}

/// Asks as hammer does until there is a ticket; the boot server may have to wait for control.
async fn ticket(machine: &Machine, pixie: &str, from: Ipv4Addr) -> Result<Ticket> {
    let [cable, _] = &machine.plan.cables;
    let (uuid, mac) = (machine.plan.uuid.to_string(), cable.mac.to_string());
    let question = serde_json::json!({ "uuid": uuid, "mac": mac }).to_string();
    let mut refusals = 0;
    for _ in 0..TICKET_TRIES {
        let answer = http::post(from, &format!("{pixie}/v1/ticket"), question.clone()).await;
        match answer {
            Ok(answer) if answer.status == 200 => {
                return ticket::parse(&answer.body, &uuid, &mac);
            }
            Ok(answer) if answer.status < 500 => {
                refusals += 1;
                if refusals == REFUSALS_MAX {
                    bail!("no ticket: {} {}", answer.status, text(answer.body));
                }
            }
            Ok(_) | Err(_) => {}
        }
        sleep(TICKET_AGAIN).await;
    }
    bail!("no ticket")
}

fn text(bytes: bytes::Bytes) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The word that follows a text.
fn word_after<'a>(script: &'a str, text: &str) -> Option<&'a str> {
    script.split_once(text)?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::word_after;

    #[test]
    fn scripts_are_read() {
        let script = "#!ipxe\n:again\nkernel http://h/kernel initrd=i metalmesh.pixie=http://h x\n";
        assert_eq!(word_after(script, "\nkernel "), Some("http://h/kernel"));
        assert_eq!(word_after(script, "metalmesh.pixie="), Some("http://h"));
        assert_eq!(word_after(script, "chain "), None);
    }
}
