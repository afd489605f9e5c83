//! Concurrency limits of calls: how many arrive and run at the same time, and their bytes in
//! memory.
//!
//! A call counts as arriving until its body is complete, and only then takes one of the slots for
//! running calls: a client that sends headers without bodies does not block others. Callers with a
//! valid token, callers without one and pages for browsers have separate limits, each with a bound
//! per caller.

mod arriving;
mod share_owner;

use std::sync::Arc;

use proto_bounds::{Place, Places};
use tonic::Status;

use arriving::Arriving;
pub(super) use share_owner::ShareOwner;

/// Most running calls with a token. Each holds its request in memory; further calls are refused.
pub const CALLS_MAX: usize = 4096;
/// Most running calls of one token.
pub const CALLS_PER_TOKEN_MAX: usize = 512;
/// Most calls whose body is still arriving. Further calls are refused.
const ARRIVING_MAX: usize = 4096;
/// Most arriving calls of one token: as many as one HTTP/2 connection carries.
const ARRIVING_PER_TOKEN_MAX: usize = 256;
/// Most bytes of requests with a token in memory.
const BYTES_MAX: usize = 512 << 20;
/// Most bytes of requests of one token in memory.
const BYTES_PER_TOKEN_MAX: usize = 64 << 20;

/// Most calls without a valid token, arriving and running each. Such calls are short.
const ANONYMOUS_MAX: usize = 1024;
/// Most calls without a valid token of one client network.
const ANONYMOUS_PER_NETWORK_MAX: usize = 64;
/// Largest request of a caller without a valid token, bytes. The methods that it may call need only
/// small requests; a larger one is refused.
pub(super) const ANONYMOUS_BYTES_MAX: usize = 64 << 10;
/// Most requests for pages, arriving and running each.
const PAGES_MAX: usize = 512;
/// Most requests for pages of one client network. A browser opens six connections.
const PAGES_PER_NETWORK_MAX: usize = 32;
/// Most open request streams. They need no token, so the bound is small.
const STREAMS_MAX: usize = 128;
/// Most open request streams of one caller.
const STREAMS_EACH_MAX: usize = 16;

/// The limits of one kind of callers.
#[derive(Debug)]
pub(super) struct Room {
    arriving: Arc<Places<ShareOwner>>,
    running: Arc<Places<ShareOwner>>,
    bytes: Arc<Places<ShareOwner>>,
}

/// All rooms of a front.
#[derive(Debug)]
pub(super) struct Rooms {
    tokens: Room,
    anonymous: Room,
    pub(super) pages: Room,
    streams: Arc<Places<ShareOwner>>,
}

impl Rooms {
    pub(super) fn new() -> Self {
        Self {
            tokens: Room {
                arriving: Places::new(ARRIVING_MAX, ARRIVING_PER_TOKEN_MAX),
                running: Places::new(CALLS_MAX, CALLS_PER_TOKEN_MAX),
                bytes: Places::new(BYTES_MAX, BYTES_PER_TOKEN_MAX),
            },
            anonymous: Room::of_strangers(ANONYMOUS_MAX, ANONYMOUS_PER_NETWORK_MAX),
            pages: Room::of_strangers(PAGES_MAX, PAGES_PER_NETWORK_MAX),
            streams: Places::new(STREAMS_MAX, STREAMS_EACH_MAX),
        }
    }

    pub(super) fn of(&self, caller: &ShareOwner) -> &Room {
        match caller {
            ShareOwner::Token(_) => &self.tokens,
            ShareOwner::Network(_) => &self.anonymous,
        }
    }

    /// Takes a place for a request stream.
    ///
    /// # Errors
    /// `resource_exhausted` if a bound is reached.
    pub(super) fn stream(&self, caller: ShareOwner) -> Result<Place<ShareOwner>, Status> {
        self.streams.take(caller).ok_or_else(busy)
    }
}

impl Room {
    fn of_strangers(max: usize, each_max: usize) -> Self {
        Self {
            arriving: Places::new(max, each_max),
            running: Places::new(max, each_max),
            bytes: Places::new(max * ANONYMOUS_BYTES_MAX, each_max * ANONYMOUS_BYTES_MAX),
        }
    }

    /// Takes a place for a request whose head has arrived.
    ///
    /// # Errors
    /// `resource_exhausted` if a bound is reached.
    pub(super) fn arrive(&self, caller: ShareOwner) -> Result<Arriving<'_>, Status> {
        let place = self.arriving.take(caller.clone()).ok_or_else(busy)?;
        let bytes = self.bytes.none(caller.clone());
        Ok(Arriving::new(self, caller, bytes, place))
    }
}

fn busy() -> Status {
    Status::resource_exhausted("too many calls at the same time; try again in a moment")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use tonic::Code;
    use tower::BoxError;

    use super::*;

    fn token(name: &str) -> ShareOwner {
        ShareOwner::Token(name.into())
    }

    #[tokio::test]
    async fn requests_of_one_token_take_its_memory_only() {
        let rooms = Rooms::new();
        let room = rooms.of(&token("a"));
        let large = || Full::new(Bytes::from(vec![0; 4 << 20]));
        let mut held = Vec::new();
        let refused = loop {
            let mut arriving = room.arrive(token("a")).unwrap();
            match arriving.read(large(), 4 << 20).await {
                Ok(body) => held.push((body, arriving.run().unwrap())),
                Err(status) => break status,
            }
        };
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(held.len() * (4 << 20) <= BYTES_PER_TOKEN_MAX);
        let mut other = room.arrive(token("b")).unwrap();
        other.read(large(), 4 << 20).await.unwrap();
        drop((held, other));
        assert_eq!(room.bytes.taken() + room.running.taken(), 0);
    }

    #[tokio::test]
    async fn a_body_in_parts_arrives_whole_and_no_larger_than_it_may_be() {
        let rooms = Rooms::new();
        let room = rooms.of(&token("a"));
        let parts = || {
            let parts =
                ["ab", "", "cd", "e"].map(|part| Ok::<_, BoxError>(Frame::data(part.into())));
            StreamBody::new(futures::stream::iter(parts))
        };
        let mut arriving = room.arrive(token("a")).unwrap();
        let whole = arriving.read(parts(), 5).await.unwrap();
        assert_eq!(&whole[..], b"abcde");
        let mut arriving = room.arrive(token("a")).unwrap();
        let refused = arriving.read(parts(), 4).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
    }

    #[test]
    fn one_network_leaves_room_to_others() {
        let rooms = Rooms::new();
        let at = |number: u8| ShareOwner::Network([192, 0, 2, number].into());
        let room = rooms.of(&at(1));
        let mut taken = Vec::new();
        while let Ok(arriving) = room.arrive(at(1)) {
            taken.push(arriving);
        }
        assert_eq!(taken.len(), ANONYMOUS_PER_NETWORK_MAX);
        assert!(room.arrive(at(2)).is_ok() && rooms.pages.arrive(at(1)).is_ok());
        let streams: Vec<_> = (0..99).map_while(|_| rooms.stream(at(1)).ok()).collect();
        assert_eq!(streams.len(), STREAMS_EACH_MAX);
        assert!(rooms.stream(token("a")).is_ok());
    }
}
