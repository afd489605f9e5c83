//! Builds the world of a run and starts its parts.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;

use agents_kit::Socket;
use anyhow::Result;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fabric::Fabric;
use crate::machine::{self, Machine};
use crate::options::Options;
use crate::plan::Plan;
use crate::relay::Relay;
use crate::world::{Ports, SOCKETS, Times, World};
use crate::{bmc, ipmi};

/// Builds the world and binds its sockets. Nothing runs yet. Control is not a part of it.
pub(crate) async fn build(
    options: &Options,
    plan: Plan,
) -> Result<(Arc<World>, tokio::net::TcpListener)> {
    raise_open_files();
    let plans = plan.all();
    let truth = machine::truth(&plans);
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    let udp = || -> Result<u16> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        Ok(socket.local_addr()?.port())
    };
    let ports = Ports {
        dhcp: udp()?,
        tftp: udp()?,
        ipmi: udp()?,
        http: TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?
            .local_addr()?
            .port(),
        redfish: listener.local_addr()?.port(),
    };
    let mut relays = Vec::new();
    for partition in 0..plan.partitions {
        relays.push(Relay::bind(partition, ports.dhcp).await?);
    }
    let sockets: std::io::Result<_> = (0..SOCKETS).map(|_| Socket::bind()).collect();
    let world = World {
        delays: options.delays,
        ports,
        truth,
        times: Times::default(),
        by_uuid: plans.iter().map(|p| (p.uuid, p.number)).collect(),
        machines: plans.into_iter().map(Machine::new).collect(),
        fabrics: (0..plan.partitions)
            .map(|p| Fabric::new(plan.leaves_of(p)))
            .collect::<Result<_, _>>()?,
        relays,
        otlp: options.otlp.clone(),
        bmc_nonce: options.bmc_nonce,
        sockets: sockets?,
        stop: CancellationToken::new(),
    };
    Ok((Arc::new(world), listener))
}

/// Raises the limit of open files to the hard limit: each machine has a socket to control.
fn raise_open_files() {
    let pid = std::process::id().to_string();
    let mut raise = std::process::Command::new("sh");
    raise.args([
        "-c",
        "prlimit --pid \"$0\" --nofile=\"$(ulimit -Hn)\"",
        &pid,
    ]);
    // A failure is no error: small fleets run anyway, and large ones fail with the missing limit.
    raise.status().ok();
}

/// Starts the BMCs, the relays and the machines.
pub(crate) fn spawn(
    tasks: &mut JoinSet<()>,
    world: &Arc<World>,
    listener: tokio::net::TcpListener,
) {
    let of = |world: &Arc<World>| Arc::clone(world);
    let bmcs = of(world);
    tasks.spawn(async move {
        if let Err(error) = bmc::serve(bmcs, listener).await {
            tracing::error!(error = format!("{error:#}"), "no BMC answers any more");
        }
    });
    for partition in 0..world.relays.len() {
        let world = of(world);
        tasks.spawn(async move {
            if let Some(relay) = world.relays.get(partition) {
                relay.run(&world.stop).await;
            }
        });
    }
    for machine in &world.machines {
        let number = machine.plan.number;
        if machine.plan.has_ipmi {
            let world = of(world);
            tasks.spawn(async move {
                if let Err(error) = ipmi::serve(world, number).await {
                    tracing::error!(
                        number,
                        error = format!("{error:#}"),
                        "its BMC is silent now"
                    );
                }
            });
        }
        let world = of(world);
        tasks.spawn(async move { machine::live(&world, number).await });
    }
}
