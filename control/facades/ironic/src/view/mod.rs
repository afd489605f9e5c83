//! JSON of the state's rows: pure functions, apart from handlers.

mod json;
mod times;

pub(crate) use json::{link, links, object_of, text_or_null};
pub(crate) use times::{time, time_or_null};
