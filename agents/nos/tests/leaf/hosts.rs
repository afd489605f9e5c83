//! Hosts: namespaces with one port, whose listeners say who they are.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::daemons::{DEADLINE, Switch, ip};

/// Port of the listeners.
pub(crate) const PORT: u16 = 7;
/// Time after which an address is taken for unreachable. A packet takes some milliseconds also in
/// an emulated machine.
const SILENCE: Duration = Duration::from_secs(2);

/// A namespace that goes away with the value.
pub(crate) struct Host {
    pub(crate) name: String,
}

/// Runs a future on a thread of its own inside a namespace.
pub(crate) fn inside<T: Send + 'static>(
    namespace: &str,
    work: impl AsyncFnOnce() -> T + Send + 'static,
) -> T {
    let path = format!("/run/netns/{namespace}");
    let enter = move || {
        let file = std::fs::File::open(path).unwrap();
        nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(work())
    };
    let done = std::thread::spawn(enter).join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Puts a cable between a port of a switch and `eth0` of another namespace.
pub(crate) fn cable(switch: &Switch, port: &str, other: &str, other_port: &str) {
    let name = &switch.name;
    ip(&format!(
        "-n {name} link add {port} type veth peer name {other_port} netns {other}"
    ));
    ip(&format!("-n {other} link set {other_port} up"));
}

impl Host {
    /// A host on a port of a switch, with an address and a default gateway.
    pub(crate) fn new(short: &str, leaf: &Switch, port: &str, address: &str, via: &str) -> Self {
        let name = format!("mml{}-{short}", std::process::id());
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        cable(leaf, port, &name, "eth0");
        ip(&format!("-n {name} addr add {address} dev eth0"));
        ip(&format!("-n {name} route add default via {via}"));
        listen(&name, short);
        Self { name }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.name));
    }
}

/// Listens in a namespace on every address, and tells everybody a word.
pub(crate) fn listen(namespace: &str, word: &str) {
    let listener = inside(namespace, async || TcpListener::bind(("::", PORT)).unwrap());
    let word = word.to_owned();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            stream.write_all(word.as_bytes()).ok();
        }
    });
}

/// The answer at an address, as a namespace gets it: the word of a listener, "refused" from a host
/// without one, `None` if nobody answers.
pub(crate) fn answer(namespace: &str, target: &str, port: u16) -> Option<String> {
    let target = SocketAddr::new(target.parse::<IpAddr>().unwrap(), port);
    inside(namespace, async move || {
        match TcpStream::connect_timeout(&target, SILENCE) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(SILENCE)).unwrap();
                let mut word = String::new();
                stream.read_to_string(&mut word).ok();
                Some(word)
            }
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => Some("refused".into()),
            Err(_) => None,
        }
    })
}

/// Waits until a namespace gets an answer, and checks who gave it. `false` if nobody does.
pub(crate) fn reaches(namespace: &str, target: &str, word: &str) -> bool {
    let until = Instant::now() + DEADLINE;
    loop {
        let got = answer(namespace, target, PORT);
        if got.is_some() {
            assert_eq!(got.as_deref(), Some(word), "{namespace} to {target}");
            return true;
        }
        if Instant::now() > until {
            return false;
        }
    }
}

/// Checks that nobody answers.
pub(crate) fn assert_silent(namespace: &str, target: &str, port: u16) {
    let got = answer(namespace, target, port);
    assert_eq!(got, None, "{namespace} reaches {target}");
}
