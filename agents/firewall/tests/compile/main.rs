//! The compiler against a plain evaluator of the rules, and tables of configurations.
#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod config;
<<<<<<< HEAD
mod control;
=======
mod kubeconfig;
>>>>>>> kube
mod objects;
mod properties;
mod sources;
mod tables;
