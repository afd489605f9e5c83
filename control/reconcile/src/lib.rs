//! Background duties of the leader: one module a kind, plan() pure.
