//! Limits on the bytes of unread answers in memory, in total and per caller.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use proto_bounds::{Place, Places};
use tonic::Status;

use super::reply::{Abandoned, ReplyBody};
use super::rooms::ShareOwner;

/// Most bytes of unread answers in memory. Beyond it the next answer becomes `resource_exhausted`.
const BYTES_MAX: usize = 512 << 20;
/// Most bytes of unread answers of one caller.
const BYTES_EACH_MAX: usize = 64 << 20;
/// Most bytes passed to the connection at once. HTTP/2 buffers a whole frame, however small the
/// window of the reader is, and buffered bytes are not counted here.
const CHUNK_BYTES: usize = 64 << 10;

/// The bytes of unread answers.
#[derive(Debug)]
pub(super) struct UnreadAnswers(Arc<Places<ShareOwner>>);

impl UnreadAnswers {
    pub(super) fn new() -> Self {
        Self(Places::new(BYTES_MAX, BYTES_EACH_MAX))
    }

    /// Counts an answer until it was read completely or its reader is gone.
    ///
    /// # Errors
    /// `resource_exhausted` if the bytes of the caller or of all callers reach their bound.
    pub(super) fn hold(
        &self,
        caller: ShareOwner,
        response: Response<ReplyBody>,
    ) -> Result<Response<ReplyBody>, Status> {
        let bytes = response.body().size_hint().lower();
        let mut place = self.0.none(caller);
        if !place.grow(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            let message = "too many answers are not read to their end; read some of them first";
            return Err(Status::resource_exhausted(message));
        }
        Ok(response.map(|inner| {
            let held = HeldBody {
                inner,
                rest: Bytes::new(),
                _place: place,
            };
            held.boxed_unsync()
        }))
    }
}

/// A body in memory, with its share of the bound.
struct HeldBody {
    inner: ReplyBody,
    /// The part of the current frame that was not passed on yet.
    rest: Bytes,
    _place: Place<ShareOwner>,
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Abandoned;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let chunk = self.rest.len().min(CHUNK_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::full;
    use super::*;

    fn caller(name: &str) -> ShareOwner {
        ShareOwner::Token(name.into())
    }

    fn answer(bytes: usize) -> Response<ReplyBody> {
        Response::new(full(vec![7; bytes]))
    }

    #[tokio::test]
    async fn what_one_caller_leaves_unread_is_bounded_and_others_have_room() {
        let unread = UnreadAnswers::new();
        let large = 7 << 20;
        let mut held = Vec::new();
        let refused = loop {
            match unread.hold(caller("a"), answer(large)) {
                Ok(answer) => held.push(answer),
                Err(status) => break status,
            }
        };
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(!held.is_empty() && held.len() * large <= BYTES_EACH_MAX);
        drop(unread.hold(caller("b"), answer(large)).unwrap());
        let read = held.pop().unwrap().into_body();
        assert_eq!(read.collect().await.unwrap().to_bytes().len(), large);
        unread.hold(caller("a"), answer(large)).unwrap();
    }

    #[tokio::test]
    async fn an_answer_is_handed_over_in_parts_and_whole() {
        let unread = UnreadAnswers::new();
        let size = 3 * CHUNK_BYTES + 1;
        let mut body = unread.hold(caller("a"), answer(size)).unwrap().into_body();
        assert_eq!(body.size_hint().exact(), Some(size as u64));
        let mut sizes = Vec::new();
        while let Some(frame) = body.frame().await {
            sizes.push(frame.unwrap().into_data().unwrap().len());
        }
        assert_eq!(sizes, [CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 1]);
        assert!(body.is_end_stream());
    }
}
