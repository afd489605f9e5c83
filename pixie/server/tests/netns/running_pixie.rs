//! Pixie in its namespace, with a stand-in for control.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use futures::future::BoxFuture;
use pixie_boot::{InstallerSource, Target};
use pixie_server::control::{BmcLease, Control, ControlError, Desired, Seen, Ticket};
use pixie_server::{Config, DesiredSink, Pixie, SelfProbe};
use proto_types::{MacAddr, MachineId};
use tokio_util::sync::CancellationToken;

use crate::world::{MAC, UUID, WAIT, World, on_thread};

/// A control whose answers the test sets, and which records the calls.
#[derive(Debug, Default)]
pub(crate) struct FakeControl {
    pub(crate) away: Mutex<bool>,
    /// Tickets are never issued: their calls hang.
    pub(crate) is_stuck: Mutex<bool>,
    pub(crate) target: Mutex<Option<Target>>,
    pub(crate) seen: Mutex<Vec<Seen>>,
    pub(crate) tickets: Mutex<Vec<MachineId>>,
    pub(crate) leases: Mutex<Vec<BmcLease>>,
}

impl FakeControl {
    pub(crate) fn set_away(&self, away: bool) {
        *self.away.lock().unwrap() = away;
    }

    fn answer<T>(&self, value: impl FnOnce() -> T) -> Result<T, ControlError> {
        if *self.away.lock().unwrap() {
            Err(ControlError::Away("switched off by the test".into()))
        } else {
            Ok(value())
        }
    }
}

impl Control for FakeControl {
    fn seen(&self, seen: Seen) -> BoxFuture<'_, Result<Option<Target>, ControlError>> {
        Box::pin(async move {
            self.answer(|| {
                self.seen.lock().unwrap().push(seen);
                *self.target.lock().unwrap()
            })
        })
    }

    fn issue_ticket(
        &self,
        machine: MachineId,
        _mac: MacAddr,
    ) -> BoxFuture<'_, Result<Ticket, ControlError>> {
        let is_stuck = *self.is_stuck.lock().unwrap();
        Box::pin(async move {
            if is_stuck {
                std::future::pending::<()>().await;
            }
            self.answer(|| {
                self.tickets.lock().unwrap().push(machine);
                Ticket {
                    id: "t-1".into(),
                    secret: vec![1, 2, 3],
                    roots: vec![vec![4, 5]],
                }
            })
        })
    }

    fn report_leases(&self, leases: Vec<BmcLease>) -> BoxFuture<'_, Result<(), ControlError>> {
        Box::pin(async move { self.answer(|| *self.leases.lock().unwrap() = leases) })
    }
}

/// A running pixie; stopped when dropped.
pub(crate) struct Running {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
    pub(crate) sink: DesiredSink,
    pub(crate) probe: SelfProbe,
    pub(crate) control: Arc<FakeControl>,
}

impl Running {
    pub(crate) fn start(world: &World, config: Config) -> Self {
        let control = Arc::new(FakeControl::default());
        let stop = CancellationToken::new();
        let (ready, started) = std::sync::mpsc::channel();
        let (state, token) = (world.state_dir(), stop.clone());
        let for_pixie: Arc<FakeControl> = Arc::clone(&control);
        let thread = on_thread(&world.pixie_ns, move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let pixie = Pixie::spawn(config, for_pixie, &state, token)
                    .await
                    .unwrap();
                ready.send((pixie.desired_sink(), pixie.probe())).unwrap();
                pixie.run().await.unwrap();
            });
        });
        let (sink, probe) = started.recv_timeout(WAIT).expect("pixie starts");
        Self {
            stop,
            thread: Some(thread),
            sink,
            probe,
            control,
        }
    }

    pub(crate) fn set_target(&self, target: Target) {
        self.set_installer(target, InstallerSource::Own);
    }

    /// Control names an installer; the machine boots `target`.
    pub(crate) fn set_installer(&self, target: Target, installer: InstallerSource) {
        let mut desired = Desired {
            generation: 1,
            installer,
            commandline: "extra=1".into(),
            control: vec!["10.90.0.1:4443".into()],
            ..Desired::default()
        };
        desired
            .machines
            .insert(UUID.parse().unwrap(), [MAC], target);
        self.sink.set(desired, true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
