//! Who may do what: the table generated from the proto options.
