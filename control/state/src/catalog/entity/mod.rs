//! Partitions, sizes, reservations, images and layouts.

mod disk;
mod filesystem;
mod image;
mod image_constraint;
mod layout;
mod networking;
mod partition;
mod raid;
mod reservation;
mod size;
mod volume;

pub use disk::*;
pub use filesystem::*;
pub use image::*;
pub use image_constraint::*;
pub use layout::*;
pub use networking::*;
pub use partition::*;
pub use raid::*;
pub use reservation::*;
pub use size::*;
pub use volume::*;
