//! Partitions, sizes, reservations, images and layouts.

mod image;
mod image_constraint;
mod layout;
mod partition;
mod reservation;
mod size;

pub use image::*;
pub use image_constraint::*;
pub use layout::*;
pub use partition::*;
pub use reservation::*;
pub use size::*;
