//! A request whose body is arriving: it is read within bounds of size, time and memory.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use proto_bounds::Place;
use tonic::Status;
use tower::BoxError;

use super::{Room, ShareOwner, busy};
use crate::status::too_large;

/// Time limit for the body of a request to arrive. After it the call fails.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A request whose body is still arriving.
#[derive(Debug)]
pub(crate) struct Arriving<'a> {
    room: &'a Room,
    caller: ShareOwner,
    bytes: Place<ShareOwner>,
    _place: Place<ShareOwner>,
}

/// A complete request, until its call has ended.
#[derive(Debug)]
pub(crate) struct Running {
    _bytes: Place<ShareOwner>,
    _place: Place<ShareOwner>,
}

impl<'a> Arriving<'a> {
    /// A request of `caller` in `room`, of which no bytes have arrived yet.
    pub(super) const fn new(
        room: &'a Room,
        caller: ShareOwner,
        bytes: Place<ShareOwner>,
        place: Place<ShareOwner>,
    ) -> Self {
        Self {
            room,
            caller,
            bytes,
            _place: place,
        }
    }

    /// Reads the body, at most `bytes_max` bytes, within [`BODY_TIMEOUT`].
    ///
    /// # Errors
    /// `resource_exhausted` if the body is larger than `bytes_max` or a bound on memory is reached;
    /// `deadline_exceeded` after the time limit; `cancelled` if the body ends early.
    pub(crate) async fn read<B>(&mut self, body: B, bytes_max: usize) -> Result<Bytes, Status>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let late = || Status::deadline_exceeded("the request's body took too long");
        let read = tokio::time::timeout(BODY_TIMEOUT, self.collect(body, bytes_max));
        read.await.unwrap_or_else(|_| Err(late()))
    }

    async fn collect<B>(&mut self, body: B, bytes_max: usize) -> Result<Bytes, Status>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let mut body = std::pin::pin!(body);
        let (mut first, mut whole) = (Bytes::new(), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Status::cancelled("the request ended early"))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            // Checked before the bytes are kept, so that a body never exceeds its limit in memory.
            if first.len() + whole.len() + data.len() > bytes_max {
                return Err(too_large(bytes_max));
            }
            self.hold(data.len())?;
            // Most bodies come as one part, which is not copied.
            if first.is_empty() && whole.is_empty() {
                first = data;
                continue;
            }
            if !first.is_empty() {
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&data);
        }
        Ok(if whole.is_empty() {
            first
        } else {
            whole.freeze()
        })
    }

    /// Counts bytes that the request takes in memory until its call has ended.
    ///
    /// # Errors
    /// `resource_exhausted` if a bound on memory is reached.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Status> {
        self.bytes.grow(bytes).then_some(()).ok_or_else(busy)
    }

    /// Moves the complete request from the arriving to the running calls.
    ///
    /// # Errors
    /// `resource_exhausted` if a bound on running calls is reached.
    pub(crate) fn run(self) -> Result<Running, Status> {
        // Consumes the request, which releases its arriving slot: kept, it would count the call
        // twice.
        let place = self.room.running.take(self.caller).ok_or_else(busy)?;
        Ok(Running {
            _bytes: self.bytes,
            _place: place,
        })
    }
}
