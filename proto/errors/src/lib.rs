//! The error catalogue: code, title, workaround and the one mapping to a status.
