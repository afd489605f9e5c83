//! The typed client of the public API.
