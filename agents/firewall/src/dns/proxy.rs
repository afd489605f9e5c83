//! The DNS proxy: answers clients with what the servers say, after it has learned from it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::answer::resolved_addresses;
use super::budget::ClientBudgets;
use super::failure_code::FailureCode;
use super::listen::ListenSockets;
use super::query::{DnsQuery, QuestionKey};
use super::service::NameService;
use super::upstream::{ask, read_message, write_message};

/// Largest query, bytes, and what more of a datagram is cut off.
const QUERY_LEN_MAX: usize = 2048;
/// Longest answer over TCP, bytes.
const TCP_LEN_MAX: usize = 65_535;
/// Time for the next query on a connection, and for a client to take an answer.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// Time and queries after which a connection ends, however busy it is: others wait for its place.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
const CONNECTION_QUERIES_MAX: usize = 100;
/// Time for an answer of any server. Clients have given up then.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an error of a socket, so that an error that stays does not keep the processor busy.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

type SharedAnswer = OnceCell<Option<Arc<Vec<u8>>>>;

/// The proxy. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct DnsProxy {
    shared: Arc<ProxyShared>,
}

#[derive(Debug)]
struct ProxyShared {
    service: Arc<NameService>,
    servers: Vec<SocketAddr>,
    budgets: ClientBudgets,
    /// Questions that servers are being asked. Equal ones wait for the same answer, so that nobody
    /// can make the proxy ask often and guess one of the many answers (RFC 5452, 5).
    asked: Mutex<HashMap<QuestionKey, Weak<SharedAnswer>>>,
}

impl DnsProxy {
    pub(super) fn new(
        service: Arc<NameService>,
        servers: Vec<SocketAddr>,
        budgets: ClientBudgets,
    ) -> Self {
        Self {
            shared: Arc::new(ProxyShared {
                service,
                servers,
                budgets,
                asked: Mutex::default(),
            }),
        }
    }

    /// Serves the clients of one address until it is stopped.
    pub(super) async fn run(self, sockets: ListenSockets, stop: CancellationToken) {
        let opened = UdpSocket::from_std(sockets.udp)
            .and_then(|udp| Ok((Arc::new(udp), TcpListener::from_std(sockets.tcp)?)));
        let (udp, tcp) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                warn!(%error, "the DNS proxy cannot use its sockets");
                return;
            }
        };
        let mut tasks = JoinSet::new();
        let mut buffer = vec![0; QUERY_LEN_MAX];
        loop {
            // Running tasks are bounded by the budgets; those that have ended must not collect.
            while tasks.try_join_next().is_some() {}
            let failed = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = tasks.join_next() => false,
                received = udp.recv_from(&mut buffer) => match received {
                    Ok((len, client)) => {
                        self.begin(&udp, &buffer[..len], client, &mut tasks);
                        false
                    }
                    Err(_) => true,
                },
                accepted = tcp.accept() => match accepted {
                    Ok((stream, client)) => {
                        self.connect(stream, client.ip(), &mut tasks);
                        false
                    }
                    Err(_) => true,
                },
            };
            if failed {
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }

    /// Begins to answer a datagram. A client without budget gets nothing: an answer would cost more
    /// than its query, and could go to somebody whose address it has forged.
    fn begin(
        &self,
        socket: &Arc<UdpSocket>,
        bytes: &[u8],
        client: SocketAddr,
        tasks: &mut JoinSet<()>,
    ) {
        let Some(permit) = self.shared.budgets.admit(client.ip(), Instant::now()) else {
            debug!(%client, "a client has used up its budget");
            return;
        };
        let (proxy, socket, bytes) = (self.clone(), Arc::clone(socket), bytes.to_vec());
        tasks.spawn(async move {
            let Some(answer) = proxy.answer(&bytes, client.ip(), false).await else {
                return;
            };
            permit.charge(answer.len());
            if let Err(error) = socket.send_to(&answer, client).await {
                debug!(%client, %error, "an answer cannot be sent");
            }
        });
    }

    fn connect(&self, stream: TcpStream, client: IpAddr, tasks: &mut JoinSet<()>) {
        let Some(place) = self.shared.budgets.connect(client) else {
            debug!(%client, "a client, or its network, has no place for a connection");
            return;
        };
        // A connection takes the place of a query for as long as it is open.
        let Some(permit) = self.shared.budgets.admit(client, Instant::now()) else {
            return;
        };
        let proxy = self.clone();
        tasks.spawn(async move {
            let mut stream = stream;
            let end = Instant::now() + CONNECTION_MAX;
            for _ in 0..CONNECTION_QUERIES_MAX {
                let rest = end.saturating_duration_since(Instant::now());
                let asked = timeout(rest.min(IDLE_MAX), read_message(&mut stream)).await;
                let Ok(Ok(bytes)) = asked else {
                    break;
                };
                let Some(answer) = proxy.answer(&bytes, client, true).await else {
                    break;
                };
                permit.charge(answer.len().max(1024));
                let written = timeout(IDLE_MAX, write_message(&mut stream, &answer)).await;
                if !matches!(written, Ok(Ok(()))) || proxy.shared.budgets.is_spent(client) {
                    break;
                }
            }
            drop((permit, place));
        });
    }

    /// The answer to a client's message. `None` if it must not be answered.
    async fn answer(&self, bytes: &[u8], client: IpAddr, over_tcp: bool) -> Option<Vec<u8>> {
        let query = match DnsQuery::parse(bytes) {
            Ok(query) => query,
            Err(refusal) => return refusal,
        };
        let Some(answer) = self.ask_once(&query, over_tcp).await else {
            return Some(query.failure(FailureCode::Server));
        };
        let resolved = resolved_addresses(&query, &answer);
        if !resolved.is_empty() {
            // Before the client sees the answer: it connects at once.
            let service = &self.shared.service;
            service.learn(query.name(), &resolved, client);
        }
        let len_max = if over_tcp {
            TCP_LEN_MAX
        } else {
            query.udp_len_max()
        };
        Some(query.reply(&answer, len_max))
    }

    /// Asks the servers, or waits for the answer to an equal question that is being asked.
    async fn ask_once(&self, query: &DnsQuery, over_tcp: bool) -> Option<Arc<Vec<u8>>> {
        let key = query.key(over_tcp);
        let cell = {
            let mut asked = self.shared.asked.lock();
            let running = asked.get(&key).and_then(Weak::upgrade);
            running.unwrap_or_else(|| {
                let cell = Arc::new(SharedAnswer::new());
                asked.insert(key, Arc::downgrade(&cell));
                cell
            })
        };
        let servers = &self.shared.servers;
        let exchange = || async {
            let asked = timeout(ASK_TIMEOUT, ask(servers, query, over_tcp)).await;
            asked.ok().flatten().map(Arc::new)
        };
        let answer = cell.get_or_init(exchange).await.clone();
        drop(cell);
        let mut asked = self.shared.asked.lock();
        asked.retain(|_, running| running.strong_count() > 0);
        answer
    }
}
