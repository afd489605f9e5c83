//! metalmesh, the command line of admins and tenants.
fn main() {}
