//! metalmesh-core: the agent of one switch.
fn main() {}
