//! Partitions, sizes, reservations, images and layouts.

mod disk;
mod fabric_mode;
mod filesystem;
mod image;
mod image_constraint;
mod layout;
mod partition;
mod raid;
mod reservation;
mod size;
mod volume;

pub use disk::*;
pub use fabric_mode::*;
pub use filesystem::*;
pub use image::*;
pub use image_constraint::*;
pub use layout::*;
pub use partition::*;
pub use raid::*;
pub use reservation::*;
pub use size::*;
pub use volume::*;
