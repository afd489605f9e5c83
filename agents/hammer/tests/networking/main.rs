//! Networks of installed systems, judged by the programs that read them.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod live;
mod parsers;
mod world;
