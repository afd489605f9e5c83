//! Networks of installed systems, judged by the programs that read them.

mod live;
mod parsers;
mod world;
