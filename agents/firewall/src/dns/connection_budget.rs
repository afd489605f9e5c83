use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Open TCP connections of all clients.
const CONNECTIONS_MAX: usize = 128;
/// Of these, connections of clients that are in no private network.
const STRANGERS_MAX: usize = 2;
/// Connections of one client.
const CLIENT_MAX: usize = 8;

/// The places of TCP connections: each private network has its own, so that the clients of one cannot
/// hold those of the others. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ConnectionBudget {
    open: Arc<Mutex<OpenConnections>>,
    /// Most connections of a network.
    network_max: usize,
}

#[derive(Debug)]
struct OpenConnections {
    /// Number of each network; the last one is that of strangers.
    networks: Vec<usize>,
    /// Clients with connections: there are not more of them than connections.
    clients: HashMap<IpAddr, usize>,
}

/// An open connection. Its place is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    open: Arc<Mutex<OpenConnections>>,
    client: IpAddr,
    network: usize,
}

impl ConnectionBudget {
    /// Places for so many networks. Each has one at least.
    pub(super) fn new(networks: usize) -> Self {
        let shared = CONNECTIONS_MAX - STRANGERS_MAX;
        let open = OpenConnections {
            networks: vec![0; networks + 1],
            clients: HashMap::new(),
        };
        Self {
            open: Arc::new(Mutex::new(open)),
            network_max: (shared / networks.max(1)).max(1),
        }
    }

    /// Takes a place for a client of a network. `None` if the client, or its network, has none left.
    pub(super) fn admit(&self, client: IpAddr, network: usize) -> Option<ConnectionPermit> {
        let mut open = self.open.lock();
        let OpenConnections { networks, clients } = &mut *open;
        let is_stranger = network + 1 == networks.len();
        let network_max = if is_stranger {
            STRANGERS_MAX
        } else {
            self.network_max
        };
        let of_network = networks.get_mut(network)?;
        let of_client = clients.get(&client).copied().unwrap_or(0);
        if *of_network >= network_max || of_client >= CLIENT_MAX {
            return None;
        }
        *of_network += 1;
        clients.insert(client, of_client + 1);
        Some(ConnectionPermit {
            open: Arc::clone(&self.open),
            client,
            network,
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(of_network) = open.networks.get_mut(self.network) {
            *of_network = of_network.saturating_sub(1);
        }
        let of_client = open.clients.remove(&self.client).unwrap_or(0);
        if of_client > 1 {
            open.clients.insert(self.client, of_client - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(network: usize, number: usize) -> IpAddr {
        let bytes = [10, network, 0, number].map(|byte| u8::try_from(byte).unwrap());
        bytes.into()
    }

    #[test]
    fn a_client_has_few_places_and_gets_them_back() {
        let budget = ConnectionBudget::new(2);
        let own = || budget.admit(client(0, 1), 0);
        let mut held: Vec<_> = std::iter::from_fn(own).collect();
        assert_eq!(held.len(), CLIENT_MAX);
        drop(held.pop());
        assert!(own().is_some(), "it is dropped again");
        drop(held);
        assert_eq!(std::iter::from_fn(own).take(1000).count(), 1000);
        assert!(budget.open.lock().clients.is_empty());
    }

    #[test]
    fn connections_of_one_network_leave_the_others_theirs() {
        for (networks, each) in [(1, 126), (2, 63), (32, 3), (200, 1)] {
            let budget = ConnectionBudget::new(networks);
            let all = |network: usize| {
                let clients = (0..200).flat_map(|number| [number; 10]);
                let admit = |number| budget.admit(client(network % 200, number), network);
                clients.filter_map(admit).collect::<Vec<_>>()
            };
            let first = all(0);
            assert_eq!(first.len(), each, "{networks} networks");
            if networks > 1 {
                assert_eq!(all(networks - 1).len(), each, "{networks} networks");
            }
            assert_eq!(all(networks).len(), STRANGERS_MAX, "{networks} networks");
        }
    }
}
