//! metalmesh-pixie: DHCP, TFTP and HTTP boot of one partition.
fn main() {}
