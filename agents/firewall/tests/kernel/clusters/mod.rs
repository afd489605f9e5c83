//! The sources `seed` and `shoot`, from objects in an API server to packets in the kernel.
//!
//! Each test runs against an API server in this process, and against a real kube-apiserver if
//! `METALMESH_KUBE_DIR` names a folder with `kube-apiserver` and `etcd`: `./dev test --kube`.

mod faults;
mod memory_server;
mod real_server;
mod scenario;
mod server;
mod storage;

pub(crate) use server::ApiServer;
