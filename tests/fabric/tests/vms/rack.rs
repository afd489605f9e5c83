//! The switches of the rack, each an emulated machine, and their management network.

use control_client::Client;

use super::console::Console;
use super::control::Control;
use super::daemons::ip;
use super::leaf::Leaf;
use super::wait::found;

/// Numbers of the switches.
const LEAVES: [u8; 2] = [11, 12];
const SPINE: u8 = 21;

/// The spine, which has the configuration that it boots with.
pub(crate) struct Spine {
    console: Console,
}

/// The switches. The leaves' agents have joined.
pub(crate) struct Rack {
    pub(crate) leaves: [Leaf; 2],
    pub(crate) spine: Spine,
}

impl Rack {
    pub(crate) async fn start(_: &Control, client: &Client) -> Self {
        for number in LEAVES.into_iter().chain([SPINE]) {
            ip(&format!("link set mg{number} master mgmt up"));
        }
        let leaves = LEAVES.map(Leaf::new);
        for leaf in &leaves {
            leaf.join(client).await;
        }
        let spine = Spine::new();
        assert!(spine.has_sessions().await, "the spine has no sessions");
        Self { leaves, spine }
    }
}

impl Spine {
    pub(crate) fn new() -> Self {
        Self {
            console: Console::new(SPINE),
        }
    }

    /// Waits until both leaves have their EVPN sessions.
    pub(crate) async fn has_sessions(&self) -> bool {
        let both = found(async || {
            let shown = self.console.vtysh("show bgp l2vpn evpn summary")?;
            let sessions = shown.lines().filter(|line| is_established(line));
            (sessions.count() == LEAVES.len()).then_some(())
        });
        let has_both = both.await.is_some();
        if !has_both {
            let shown = self.console.vtysh("show bgp summary");
            println!("the spine: {}", shown.unwrap_or_default());
        }
        has_both
    }
}

/// `true` for a line of a summary whose session has received something; else its state is a word.
fn is_established(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let received = words.get(9);
    line.contains("swp") && received.is_some_and(|word| word.parse::<u32>().is_ok())
}
