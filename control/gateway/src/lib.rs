//! Agent sessions: desired state out, observed state in.
