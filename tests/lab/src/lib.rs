//! The virtual data centre: namespaces, switches, chassis and machines.
