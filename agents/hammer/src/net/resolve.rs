//! A DNS resolver, because a static program cannot use the C library's.
//!
//! Queries the DNS servers of the lease for A, then AAAA. No cache: hammer resolves a few names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use tokio::net::UdpSocket;

/// Longest wait for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// Rounds through all servers until the name counts as unknown.
const TRIES_MAX: usize = 3;
/// Servers that are queried at most; further ones are ignored.
const SERVERS_MAX: usize = 3;
/// Bytes of an answer at most: the limit of UDP without EDNS (RFC 1035 §4.2.1).
const ANSWER_MAX: usize = 512;

/// Resolves names by the given servers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Resolver {
    servers: Vec<IpAddr>,
}

impl Resolver {
    /// A resolver that queries these servers, in this order.
    #[must_use]
    pub fn new(servers: Vec<IpAddr>) -> Self {
        Self { servers }
    }

    /// The address of a host. Literal addresses need no server.
    ///
    /// # Errors
    /// When no server knows the name.
    pub async fn resolve(&self, host: &str) -> Result<IpAddr> {
        if let Ok(address) = host.parse() {
            return Ok(address);
        }
        // Never sent to a server (RFC 6761 §6.3).
        if host == "localhost" {
            return Ok(Ipv4Addr::LOCALHOST.into());
        }
        for _ in 0..TRIES_MAX {
            for server in self.servers.iter().take(SERVERS_MAX) {
                // A first: the boot network gives the machine an IPv4 address.
                for kind in [TYPE::A, TYPE::AAAA] {
                    match ask(*server, host, kind).await {
                        Ok(Some(address)) => return Ok(address),
                        // The next server may know the name: with split DNS not every server knows
                        // the site's own names.
                        Ok(None) => {}
                        Err(error) => tracing::debug!(%server, host, %error, "no DNS answer"),
                    }
                }
            }
        }
        bail!("no DNS server of {:?} knows {host}", self.servers)
    }

    /// The socket address of a `host:port`.
    ///
    /// # Errors
    /// When there is no port, or no server knows the name.
    pub async fn resolve_endpoint(&self, endpoint: &str) -> Result<SocketAddr> {
        if let Ok(address) = endpoint.parse() {
            return Ok(address);
        }
        let (host, port) = endpoint
            .rsplit_once(':')
            .with_context(|| format!("{endpoint} has no port"))?;
        let port = port
            .parse()
            .with_context(|| format!("not a port: {port}"))?;
        Ok(SocketAddr::new(self.resolve(host).await?, port))
    }
}

async fn ask(server: IpAddr, host: &str, kind: TYPE) -> Result<Option<IpAddr>> {
    let any: IpAddr = match server {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A port of its own for each query: a forged answer must guess the port besides the 16-bit id
    // (RFC 5452 §4.5).
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect((server, 53)).await?;
    let id: u16 = rand::random();
    socket.send(&question(id, host, kind)?).await?;
    let mut buffer = [0; ANSWER_MAX];
    let read = tokio::time::timeout(ANSWER_LIMIT, socket.recv(&mut buffer)).await??;
    answer(id, buffer.get(..read).unwrap_or_default())
}

fn question(id: u16, host: &str, kind: TYPE) -> Result<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(host)?;
    packet.questions.push(Question::new(
        name,
        QTYPE::TYPE(kind),
        QCLASS::CLASS(CLASS::IN),
        false,
    ));
    Ok(packet.build_bytes_vec()?)
}

/// The first address of an answer. `None` if the name has none of the queried type.
fn answer(id: u16, bytes: &[u8]) -> Result<Option<IpAddr>> {
    let packet = Packet::parse(bytes)?;
    if packet.id() != id || !packet.has_flags(PacketFlag::RESPONSE) {
        bail!("an answer to another query");
    }
    if !matches!(packet.rcode(), RCODE::NoError | RCODE::NameError) {
        bail!("the server refuses: {:?}", packet.rcode());
    }
    // A recursive server puts the aliases (CNAME) before the addresses of their target. Taking the
    // first address follows the chain.
    Ok(packet.answers.iter().find_map(|r| match &r.rdata {
        RData::A(a) => Some(Ipv4Addr::from_bits(a.address).into()),
        RData::AAAA(a) => Some(Ipv6Addr::from_bits(a.address).into()),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::A;

    use super::*;

    #[test]
    fn an_answer_gives_its_address() {
        let mut reply = Packet::new_reply(7);
        let name = Name::new_unchecked("images.example");
        let rdata = RData::A(A {
            address: 0x0a00_0001,
        });
        reply
            .answers
            .push(ResourceRecord::new(name, CLASS::IN, 60, rdata));
        let bytes = reply.build_bytes_vec().unwrap();
        assert_eq!(
            answer(7, &bytes).unwrap(),
            Some("10.0.0.1".parse().unwrap())
        );
        assert!(answer(8, &bytes).is_err());
        for end in 0..bytes.len() {
            drop(answer(7, &bytes[..end]));
        }
    }

    #[tokio::test]
    async fn numbers_need_no_server() {
        let r = Resolver::default();
        assert_eq!(
            r.resolve("::1").await.unwrap(),
            "::1".parse::<IpAddr>().unwrap()
        );
        let endpoint = r.resolve_endpoint("10.0.0.1:4443").await.unwrap();
        assert_eq!(endpoint, "10.0.0.1:4443".parse().unwrap());
        assert!(r.resolve("name.example").await.is_err());
    }
}
