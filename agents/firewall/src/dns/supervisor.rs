use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base_runtime::Chain;
use ipnet::IpNet;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::budget::ClientBudgets;
use super::limits::NameLimits;
use super::listen::{ListenPlace, own_addresses, places};
use super::proxy::DnsProxy;
use super::saved::SavedName;
use super::service::NameService;
use crate::netlink::NetlinkError;
use crate::rule::{NameResolver, NetworkKind, RuleSet};

/// Shortest time between two writes of the state file.
const SAVE_PERIOD: Duration = Duration::from_secs(5);

/// The DNS proxy while the agent runs: listens as the rules in force want it, and keeps the kernel's
/// sets of names.
#[derive(Debug)]
pub struct NameSupervisor {
    service: Arc<NameService>,
    running: Option<RunningProxy>,
    tasks: JoinSet<()>,
    /// `true` once the state file was read.
    is_restored: bool,
    /// Content of the state file when it was last written, and the time of that.
    saved: Vec<SavedName>,
    saved_at: Instant,
}

#[derive(Debug)]
struct RunningProxy {
    resolver: NameResolver,
    /// Prefixes of each private network.
    networks: Vec<Vec<IpNet>>,
    proxy: DnsProxy,
    stop: CancellationToken,
    /// Places that it listens on. `None` for those that it cannot listen on.
    places: BTreeMap<ListenPlace, Option<CancellationToken>>,
}

impl NameSupervisor {
    /// A supervisor without names.
    ///
    /// # Errors
    /// The kernel's nftables cannot be opened.
    pub fn open(limits: NameLimits) -> Result<Self, NetlinkError> {
        Ok(Self {
            service: Arc::new(NameService::open(limits)?),
            running: None,
            tasks: JoinSet::new(),
            is_restored: false,
            saved: Vec::new(),
            saved_at: Instant::now(),
        })
    }

    /// The addresses of names.
    #[must_use]
    pub fn service(&self) -> &Arc<NameService> {
        &self.service
    }

    /// Follows rules that have come into force, or a table that was repaired. `saved` reads the
    /// state file; it is called once, when names are wanted first.
    pub fn follow(&mut self, rules: &RuleSet, saved: impl FnOnce() -> Vec<SavedName>) {
        let has_names = !rules.selectors().is_empty();
        let mut configured = self.service.configure(rules);
        if has_names && !self.is_restored {
            self.is_restored = true;
            self.service.restore(&saved());
            configured = configured.and_then(|()| self.service.configure(rules));
        }
        if let Err(error) = configured {
            error!(error = %Chain(&error), "the addresses of names are not in the kernel");
        }
        let wanted = rules.needed_resolver();
        let networks = private_prefixes(rules);
        let is_same =
            |own: &RunningProxy| wanted == Some(&own.resolver) && networks == own.networks;
        if !self.running.as_ref().is_some_and(is_same) {
            self.stop();
            self.running = wanted.map(|resolver| {
                let budgets = ClientBudgets::new(&networks, Instant::now());
                let service = Arc::clone(&self.service);
                RunningProxy {
                    proxy: DnsProxy::new(service, resolver.servers.clone(), budgets),
                    resolver: resolver.clone(),
                    networks,
                    stop: CancellationToken::new(),
                    places: BTreeMap::new(),
                }
            });
        }
        self.listen(rules);
    }

    /// Listens on addresses that this host has got since. Call it about each second.
    pub fn listen(&mut self, rules: &RuleSet) {
        while self.tasks.try_join_next().is_some() {}
        let Some(running) = &mut self.running else {
            return;
        };
        self.service.set_own(&own_addresses());
        let wanted = places(&running.resolver, rules);
        running.places.retain(|place, open| {
            let is_wanted = wanted.contains(place);
            if let Some(stop) = open.as_ref().filter(|_| !is_wanted) {
                stop.cancel();
            }
            is_wanted
        });
        for place in wanted {
            if running.places.get(&place).is_some_and(Option::is_some) {
                continue;
            }
            let port = running.resolver.port;
            let open = match place.open(port) {
                Ok(sockets) => {
                    info!(address = %place.address, port, "the DNS proxy listens");
                    let stop = running.stop.child_token();
                    let proxy = running.proxy.clone();
                    self.tasks.spawn(proxy.run(sockets, stop.clone()));
                    Some(stop)
                }
                Err(error) => {
                    // Once for each place: it is tried again each second.
                    if !running.places.contains_key(&place) {
                        warn!(address = %place.address, port, %error, "the DNS proxy cannot listen");
                    }
                    None
                }
            };
            running.places.insert(place, open);
        }
    }

    /// The state file's new content, if it should be written: at most every few seconds, or at once
    /// if `is_last`. The kernel keeps what is lost in between, unless the host is restarted.
    #[must_use]
    pub fn unsaved(&mut self, is_last: bool) -> Option<Vec<u8>> {
        let is_due = is_last || self.saved_at.elapsed() >= SAVE_PERIOD;
        if !self.is_restored || !is_due {
            return None;
        }
        self.saved_at = Instant::now();
        let current = self.service.save();
        if current == self.saved {
            return None;
        }
        let bytes = serde_json::to_vec(&current).ok()?;
        self.saved = current;
        Some(bytes)
    }

    /// Stops listening. Addresses stay in the kernel until their lifetimes end.
    fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop.cancel();
        }
        // The sockets must be closed before others are bound to the same addresses.
        self.tasks.abort_all();
    }
}

fn private_prefixes(rules: &RuleSet) -> Vec<Vec<IpNet>> {
    let networks = rules.networks.iter();
    networks
        .filter(|network| network.kind == NetworkKind::Private)
        .map(|network| network.prefixes.clone())
        .collect()
}
