//! Switch back-ends: what turns a desired port into a configured one.
