//! The state that all tasks share. Locks are held for a decision, never across I/O.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agents_kit::StateDir;
use parking_lot::{Mutex, MutexGuard, RwLock};
use pixie_boot::{
    BootLog, InstallerSource, Lease, LeaseBook, Pool, RelayRefusal, RelayedPort, RelayedPorts,
};
use proto_types::MacAddr;
use tokio::sync::Notify;

use crate::clock::now_ms;
use crate::config::{Config, Mode};
use crate::control::{BmcLease, Control, Desired, SwitchPort};
use crate::installer::InstallerState;
use crate::leasefile;
use crate::spool::{self, Spool};

/// The state that all tasks of one pixie share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) control: Arc<dyn Control>,
    pub(crate) spool: Spool,
    pub(crate) installer: InstallerState,
    /// Notified when a lease of a BMC changed.
    pub(crate) bmc_leases_changed: Notify,
    books: Mutex<Vec<LeaseBook>>,
    lease_file: PathBuf,
    /// Number of lease changes so far.
    lease_changes: AtomicU64,
    /// Number of the last change that is on disk. Its lock admits one writer at a time, so that an
    /// older book never replaces a newer one.
    leases_written: tokio::sync::Mutex<u64>,
    desired: RwLock<Arc<Desired>>,
    boots: Mutex<BootLog>,
    relayed: Mutex<RelayedPorts>,
    /// Requests that were refused because of their way, by reason.
    refused: Mutex<BTreeMap<&'static str, u64>>,
    /// Time of control's last answer, milliseconds since the epoch. 0 means never.
    control_ms: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Opens the state directory.
    pub(crate) fn open(
        config: Config,
        control: Arc<dyn Control>,
        state_dir: &std::path::Path,
    ) -> std::io::Result<Self> {
        let dir = StateDir::open(state_dir).map_err(std::io::Error::other)?;
        let lease_file = state_dir.join("leases.json");
        let leases = leasefile::read_leases(&lease_file)?;
        let books = config
            .networks
            .iter()
            .map(|n| {
                // Leases of networks that were removed from the configuration are dropped.
                let here = leases
                    .iter()
                    .filter(|l| n.network.subnet.contains(&l.address));
                LeaseBook::from_leases(here.cloned())
            })
            .collect();
        // Until the first desired state arrives the right installer is unknown. Serving pixie's own
        // would be a guess.
        let unknown = Desired {
            installer: InstallerSource::Unknown,
            ..Desired::default()
        };
        let shared = Self {
            installer: InstallerState::open(&state_dir.join("installer"))?,
            spool: spool::open(dir),
            control,
            bmc_leases_changed: Notify::new(),
            books: Mutex::new(books),
            lease_file,
            lease_changes: AtomicU64::new(0),
            leases_written: tokio::sync::Mutex::new(0),
            desired: RwLock::default(),
            boots: Mutex::default(),
            relayed: Mutex::default(),
            refused: Mutex::default(),
            control_ms: AtomicU64::new(0),
            config,
        };
        shared.set_desired(unknown);
        Ok(shared)
    }

    pub(crate) fn desired(&self) -> Arc<Desired> {
        Arc::clone(&self.desired.read())
    }

    pub(crate) fn set_desired(&self, mut desired: Desired) {
        let needs_script = desired.installer != InstallerSource::Own;
        desired.machines.set_needs_script(needs_script);
        // Before the state is visible: a script for the new source must not show the error of the
        // old one.
        self.installer.want(&desired.installer);
        *self.desired.write() = Arc::new(desired);
    }

    /// Records that control answered now.
    pub(crate) fn control_answered(&self) {
        self.control_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Time of control's last answer, milliseconds since the epoch. 0 means never.
    pub(crate) fn control_answered_ms(&self) -> u64 {
        self.control_ms.load(Ordering::Relaxed)
    }

    /// Notes the port of a card, as a relay says it.
    pub(crate) fn note_relayed(&self, mac: MacAddr, port: RelayedPort) {
        self.relayed.lock().note(mac, port);
    }

    /// The port of a card. `None` if no relay has said it.
    pub(crate) fn relayed(&self, mac: MacAddr) -> Option<SwitchPort> {
        let ports = self.relayed.lock();
        ports.of(mac).map(|at| SwitchPort {
            switch: at.switch.clone(),
            port: at.port.clone(),
        })
    }

    /// Counts a refused request.
    pub(crate) fn count_refused(&self, reason: &RelayRefusal) {
        *self.refused.lock().entry(reason.as_str()).or_default() += 1;
    }

    /// Refused requests by reason.
    pub(crate) fn dhcp_refused(&self) -> BTreeMap<&'static str, u64> {
        self.refused.lock().clone()
    }

    pub(crate) fn boots(&self) -> MutexGuard<'_, BootLog> {
        self.boots.lock()
    }

    fn books(&self) -> MutexGuard<'_, Vec<LeaseBook>> {
        self.books.lock()
    }

    /// Runs `decide` with the lease book of a network. `None` means that there is no such network.
    pub(crate) fn with_book<T>(
        &self,
        network: usize,
        decide: impl FnOnce(&mut LeaseBook) -> T,
    ) -> Option<T> {
        self.books().get_mut(network).map(decide)
    }

    /// Persists the leases. Returns when a lease that was changed before the call is on disk.
    /// Changes during a write share the next write (group commit).
    pub(crate) async fn persist_leases(&self) -> std::io::Result<()> {
        let mine = self.lease_changes.fetch_add(1, Ordering::SeqCst) + 1;
        let mut written = self.leases_written.lock().await;
        // Another task's write covered this change while this one waited for the lock.
        if *written >= mine {
            return Ok(());
        }
        // Read before the books are: every change counted up to here is in the copy. In the other
        // order a change between the two would count as written without being on disk.
        let newest = self.lease_changes.load(Ordering::SeqCst);
        let leases: Vec<Lease> = self
            .books()
            .iter()
            .flat_map(LeaseBook::leases)
            .cloned()
            .collect();
        let path = self.lease_file.clone();
        tokio::task::spawn_blocking(move || leasefile::write_leases(&path, &leases))
            .await
            .map_err(std::io::Error::other)??;
        *written = newest;
        Ok(())
    }

    pub(crate) fn lease_count(&self) -> usize {
        self.books().iter().map(|book| book.leases().count()).sum()
    }

    /// The unexpired leases of BMCs.
    pub(crate) fn bmc_leases(&self) -> Vec<BmcLease> {
        let now_ms = now_ms();
        self.books()
            .iter()
            .flat_map(LeaseBook::leases)
            .filter(|l| l.pool == Pool::Bmcs && l.expires_ms > now_ms)
            .map(|l| BmcLease {
                mac: l.mac,
                address: l.address,
                expires_ms: l.expires_ms,
            })
            .collect()
    }

    /// The Ethernet address behind an IP address: by the lease, or, if another server gives the
    /// leases, by the kernel's neighbour table, which the request itself has filled.
    pub(crate) fn holder(&self, network: usize, address: Ipv4Addr) -> Option<MacAddr> {
        let config = self.config.networks.get(network)?;
        match config.mode {
            Mode::Server => self
                .with_book(network, |book| book.holder(address, now_ms()))
                .flatten(),
            Mode::Proxy => crate::netdev::neighbour(address, &config.interface),
        }
    }
}
