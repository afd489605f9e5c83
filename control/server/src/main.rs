//! metalmeshd: configuration, wiring and signals of a control node.
fn main() {}
