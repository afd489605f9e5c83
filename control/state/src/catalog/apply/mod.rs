//! Transitions of partitions, sizes, reservations, images and layouts.

pub(crate) mod image;
pub(crate) mod image_constraint;
pub(crate) mod layout;
pub(crate) mod partition;
pub(crate) mod reservation;
pub(crate) mod size;
