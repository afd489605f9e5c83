//! An IPMI 2.0 client: RMCP+ sessions, chassis, FRU and device commands.
