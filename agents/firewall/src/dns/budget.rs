//! Budgets of the DNS proxy's clients.
//!
//! A client has its own budget, and each private network one that its clients share: a flood of one
//! network leaves the others theirs. Clients of no private network share one small budget.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use ipnet::IpNet;
use parking_lot::Mutex;

use super::connection_budget::{ConnectionBudget, ConnectionPermit};
use super::query_budget::QueryBudget;

/// Queries of all clients that are being answered. Each may hold an answer of 64 KiB.
const IN_FLIGHT_MAX: usize = 512;
/// Of these, queries of clients that are in no private network.
const STRANGERS_IN_FLIGHT_MAX: usize = 8;
/// Of these, queries of one client.
const CLIENT_IN_FLIGHT_MAX: usize = 64;
/// Units per second of a client, of a network and of all strangers; twice as much at once. A query
/// costs one, and each [`UNIT_BYTES`] of an answer another one.
const CLIENT_RATE: f64 = 200.0;
const NETWORK_RATE: f64 = 4000.0;
const STRANGERS_RATE: f64 = 10.0;
/// Bytes of an answer for a unit.
const UNIT_BYTES: usize = 1024;
/// Clients that are remembered. Beyond it the one that was quiet longest is forgotten.
const CLIENTS_MAX: usize = 4096;

/// The budgets of all clients. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ClientBudgets {
    state: Arc<Mutex<BudgetState>>,
    connections: ConnectionBudget,
}

#[derive(Debug)]
struct BudgetState {
    /// Prefixes of private networks, and the place of their budget.
    prefixes: Vec<(IpNet, usize)>,
    /// Budgets of networks; the last one is that of strangers.
    networks: Vec<QueryBudget>,
    clients: HashMap<IpAddr, QueryBudget>,
}

/// A query that may be answered. Its place is free again when this is dropped.
#[derive(Debug)]
pub(super) struct QueryPermit {
    state: Arc<Mutex<BudgetState>>,
    client: IpAddr,
    network: usize,
}

impl ClientBudgets {
    /// Budgets for networks, each with its prefixes.
    pub(super) fn new(networks: &[Vec<IpNet>], now: Instant) -> Self {
        let shared = IN_FLIGHT_MAX - STRANGERS_IN_FLIGHT_MAX;
        let each = (shared / networks.len().max(1)).max(1);
        let mut budgets: Vec<QueryBudget> = networks
            .iter()
            .map(|_| QueryBudget::new(each, NETWORK_RATE, now))
            .collect();
        budgets.push(QueryBudget::new(
            STRANGERS_IN_FLIGHT_MAX,
            STRANGERS_RATE,
            now,
        ));
        let of = |(index, prefixes): (usize, &Vec<IpNet>)| {
            let own = prefixes.iter().map(|prefix| (*prefix, index));
            own.collect::<Vec<_>>()
        };
        let state = BudgetState {
            prefixes: networks.iter().enumerate().flat_map(of).collect(),
            networks: budgets,
            clients: HashMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            connections: ConnectionBudget::new(networks.len()),
        }
    }

    /// Takes the place of a connection. `None` if the client, or its network, has none left.
    pub(super) fn connect(&self, client: IpAddr) -> Option<ConnectionPermit> {
        let network = self.state.lock().network_of(client);
        self.connections.admit(client, network)
    }

    /// Takes a place and a unit for a query. `None` if the client, or its network, has none left.
    pub(super) fn admit(&self, client: IpAddr, now: Instant) -> Option<QueryPermit> {
        let mut state = self.state.lock();
        let network = state.network_of(client);
        state.make_room(client);
        let BudgetState {
            networks, clients, ..
        } = &mut *state;
        let own = clients
            .entry(client)
            .or_insert_with(|| QueryBudget::new(CLIENT_IN_FLIGHT_MAX, CLIENT_RATE, now));
        let shared = networks.get_mut(network)?;
        // The client's first: a client without budget must not use that of its network.
        if !own.has_room(now) || !shared.has_room(now) {
            return None;
        }
        own.take();
        shared.take();
        Some(QueryPermit {
            state: Arc::clone(&self.state),
            client,
            network,
        })
    }
}

impl ClientBudgets {
    /// `true` if a client has no unit left for another query on its connection.
    pub(super) fn is_spent(&self, client: IpAddr) -> bool {
        let state = self.state.lock();
        let own = state.clients.get(&client);
        own.is_none_or(QueryBudget::is_spent)
    }
}

impl BudgetState {
    /// Place of the network with the longest prefix for a client; that of strangers without one.
    fn network_of(&self, client: IpAddr) -> usize {
        let own = self.prefixes.iter();
        own.filter(|(prefix, _)| prefix.contains(&client))
            .max_by_key(|(prefix, _)| prefix.prefix_len())
            .map_or_else(
                || self.networks.len().saturating_sub(1),
                |(_, network)| *network,
            )
    }

    fn make_room(&mut self, client: IpAddr) {
        if self.clients.len() < CLIENTS_MAX || self.clients.contains_key(&client) {
            return;
        }
        let quiet = self.clients.iter().filter(|(_, own)| own.is_idle());
        let quiet = quiet
            .min_by_key(|(_, own)| own.last_use())
            .map(|(client, _)| *client);
        if let Some(quiet) = quiet {
            self.clients.remove(&quiet);
        }
    }
}

impl QueryPermit {
    /// Takes the units of an answer. They may make the budget negative: the next query waits.
    pub(super) fn charge(&self, bytes: usize) {
        let mut state = self.state.lock();
        #[expect(clippy::cast_precision_loss, reason = "answers have at most 64 KiB")]
        let units = (bytes / UNIT_BYTES) as f64;
        if let Some(own) = state.clients.get_mut(&self.client) {
            own.charge(units);
        }
        if let Some(shared) = state.networks.get_mut(self.network) {
            shared.charge(units);
        }
    }
}

impl Drop for QueryPermit {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Some(own) = state.clients.get_mut(&self.client) {
            own.give_back();
        }
        if let Some(shared) = state.networks.get_mut(self.network) {
            shared.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{CLIENT_IN_FLIGHT_MAX, CLIENTS_MAX, ClientBudgets, STRANGERS_IN_FLIGHT_MAX};

    fn budgets(now: Instant) -> ClientBudgets {
        let nets = ["10.1.0.0/16", "10.2.0.0/16"];
        let nets = nets.map(|net| vec![net.parse().unwrap()]);
        ClientBudgets::new(&nets, now)
    }

    fn client(text: &str) -> std::net::IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_has_places_and_a_rate() {
        let now = Instant::now();
        let budgets = budgets(now);
        let own = client("10.1.0.1");
        let held: Vec<_> = std::iter::from_fn(|| budgets.admit(own, now)).collect();
        assert_eq!(held.len(), CLIENT_IN_FLIGHT_MAX);
        assert!(budgets.admit(client("10.1.0.2"), now).is_some());
        drop(held);
        let mut count = CLIENT_IN_FLIGHT_MAX;
        while budgets.admit(own, now).is_some() {
            count += 1;
        }
        assert_eq!(count, 400, "twice the rate at once");
        let later = now + Duration::from_millis(500);
        let mut count = 0;
        while budgets.admit(own, later).is_some() {
            count += 1;
        }
        assert_eq!(count, 100);
        let permit = budgets.admit(client("10.1.0.3"), now).unwrap();
        permit.charge(10_000_000);
        assert!(budgets.admit(client("10.1.0.3"), now).is_none());
    }

    #[test]
    fn a_flood_of_one_network_leaves_the_others_theirs() {
        let now = Instant::now();
        let budgets = budgets(now);
        let mut held = Vec::new();
        for low in 0..=255 {
            for high in 0..20 {
                let from = client(&format!("10.1.{high}.{low}"));
                held.extend(budgets.admit(from, now));
            }
        }
        assert!(held.len() <= 252, "{}", held.len());
        let other = client("10.2.0.1");
        let theirs: Vec<_> = std::iter::from_fn(|| budgets.admit(other, now)).collect();
        assert_eq!(theirs.len(), CLIENT_IN_FLIGHT_MAX);
        let strangers =
            (0..100).filter_map(|low| budgets.admit(client(&format!("192.0.2.{low}")), now));
        assert_eq!(strangers.collect::<Vec<_>>().len(), STRANGERS_IN_FLIGHT_MAX);
    }

    #[test]
    fn clients_are_bounded() {
        let now = Instant::now();
        let budgets = budgets(now);
        for index in 0..5000_u64 {
            let own = std::net::Ipv4Addr::from(0x0A01_0000 + u32::try_from(index).unwrap());
            drop(budgets.admit(own.into(), now + Duration::from_millis(index)));
        }
        assert!(budgets.state.lock().clients.len() <= CLIENTS_MAX);
    }
}
