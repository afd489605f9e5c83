//! Pixie on a real cable: real sockets in network namespaces, and peers that are not ours
//! (udhcpc, curl, tftp).

mod dhcp;
mod http;
mod tftp;
mod world;
