//! The pure replicated state machine: commands in, replies and changes out.
