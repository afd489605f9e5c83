//! metalmesh-hammer: inventory, wipe and installation on a network-booted machine.
fn main() {}
