//! The `metalmesh-pixie` binary.
fn main() {}
