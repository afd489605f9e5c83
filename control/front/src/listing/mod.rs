//! Lists whose items become messages when the caller reads them.
//!
//! A handler takes pointers to rows under one read and answers with an empty message and a
//! [`Listing`] in the extensions of its response. The front writes the items: small lists whole,
//! large ones a chunk at a time ([`crate`]).
//!
//! Invariant: an item has the same encoded length each time that it is converted. So a conversion
//! reads its row only, and neither the clock nor other state.

mod encoded_items;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use prost::Message;
use proto_public::ListAnswer;
use tonic::{Response, Status};

pub use encoded_items::EncodedItems;

/// The items of a list.
pub trait Items: Send + Sync {
    /// Number of items.
    fn count(&self) -> usize;
    /// Bytes that [`Items::encode`] appends for this index.
    fn encoded_len(&self, index: usize) -> usize;
    /// Appends an encoded item. Appends nothing if the index is out of range.
    fn encode(&self, index: usize, out: &mut Vec<u8>);
}

/// The list of an answer; the answer's message has the other fields. Cheap to clone (`Arc`).
#[derive(Clone)]
pub struct Listing {
    /// Number of the answer's repeated field.
    pub field: u32,
    /// Its items, at least one.
    pub items: Arc<dyn Items>,
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing")
            .field("field", &self.field)
            .field("items", &self.items.count())
            .finish()
    }
}

/// Rows with the function that converts each of them into an item.
struct ConvertedRows<R, F> {
    rows: Vec<R>,
    convert: F,
}

impl<R, I, F> Items for ConvertedRows<R, F>
where
    R: Send + Sync,
    I: Message,
    F: Fn(&R) -> I + Send + Sync,
{
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn encoded_len(&self, index: usize) -> usize {
        let row = self.rows.get(index);
        row.map_or(0, |row| (self.convert)(row).encoded_len())
    }

    fn encode(&self, index: usize, out: &mut Vec<u8>) {
        if let Some(row) = self.rows.get(index) {
            (self.convert)(row).encode_raw(out);
        }
    }
}

/// Answers with a list of these rows. `convert` makes the item of a row, each time that the item is
/// encoded.
pub fn listing<A, R, T>(
    rows: Vec<R>,
    convert: impl Fn(&T) -> A::Item + Send + Sync + 'static,
) -> Result<Response<A>, Status>
where
    A: ListAnswer,
    R: Borrow<T> + Send + Sync + 'static,
{
    listing_in(A::default(), rows, convert)
}

/// As [`listing`], in an answer with other fields. The list of `answer` must be empty.
pub fn listing_in<A, R, T>(
    answer: A,
    rows: Vec<R>,
    convert: impl Fn(&T) -> A::Item + Send + Sync + 'static,
) -> Result<Response<A>, Status>
where
    A: ListAnswer,
    R: Borrow<T> + Send + Sync + 'static,
{
    let convert = move |row: &R| convert(row.borrow());
    Ok(with_items(answer, ConvertedRows { rows, convert }))
}

/// Answers with a list of encoded items.
pub fn listing_encoded<A: ListAnswer>(items: EncodedItems) -> Result<Response<A>, Status> {
    Ok(with_items(A::default(), items))
}

fn with_items<A: ListAnswer>(answer: A, items: impl Items + 'static) -> Response<A> {
    let mut response = Response::new(answer);
    if items.count() > 0 {
        response.extensions_mut().insert(Listing {
            field: A::FIELD,
            items: Arc::new(items),
        });
    }
    response
}

#[cfg(test)]
mod tests {
    use proto_public::api::v2::{
        Meta, PartitionServiceListResponse, Size, SizeServiceListResponse,
    };

    use super::*;

    fn encoded(listing: &Listing, index: usize) -> Vec<u8> {
        let mut out = Vec::new();
        listing.items.encode(index, &mut out);
        assert_eq!(out.len(), listing.items.encoded_len(index), "{index}");
        out
    }

    #[test]
    fn rows_and_encoded_items_are_the_same_list() {
        let size = |id: &&str| Size {
            id: (*id).to_owned(),
            meta: Some(Meta::default()),
            ..Size::default()
        };
        let rows = vec!["a", "", "c"];
        let items: EncodedItems = rows.iter().map(size).collect();
        let late = listing::<SizeServiceListResponse, _, _>(rows, size).unwrap();
        let early = listing_encoded::<SizeServiceListResponse>(items).unwrap();
        let of = |it: &Response<SizeServiceListResponse>| it.extensions().get().cloned();
        let (late, early): (Listing, Listing) = (of(&late).unwrap(), of(&early).unwrap());
        assert_eq!((late.field, early.field), (1, 1));
        assert_eq!((late.items.count(), early.items.count()), (3, 3));
        for index in 0..4 {
            assert_eq!(encoded(&late, index), encoded(&early, index), "{index}");
        }
        assert_eq!(encoded(&late, 0), size(&"a").encode_to_vec());
        assert!(encoded(&late, 3).is_empty(), "there are three");
    }

    #[test]
    fn an_empty_list_is_the_answer_itself() {
        let empty = EncodedItems::default();
        let answer = listing_encoded::<PartitionServiceListResponse>(empty).unwrap();
        assert!(answer.extensions().get::<Listing>().is_none());
    }
}
