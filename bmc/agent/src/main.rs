//! metalmesh-bmc: finds and drives the BMCs of one partition.
fn main() {}
