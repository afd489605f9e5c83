//! The catalogue that administrators keep: partitions, sizes, reservations, images, filesystem
//! layouts.

pub(crate) mod apply;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod read;
