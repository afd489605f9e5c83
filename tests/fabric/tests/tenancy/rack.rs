//! The switches of the rack: two leaves with their agents, and a spine between them.

use control_client::Client;

use super::control::Control;
use super::daemons::Switch;
use super::hosts::cable;
use super::leaf::Leaf;
use super::models::underlay;
use super::roles::invite;
use super::switch::reconcile;

/// A spine. It goes away with the value.
pub(crate) type Spine = Switch;

/// The switches. Their agents have been started.
pub(crate) struct Rack {
    pub(crate) leaves: [Leaf; 2],
    pub(crate) spine: Spine,
}

impl Rack {
    pub(crate) async fn start(control: &Control, client: &Client) -> Self {
        let spine = Switch::start("ts", &[]).await;
        let dir = control.place("leaves");
        std::fs::create_dir(&dir).unwrap();
        let mut leaves = [Leaf::new(11, &dir).await, Leaf::new(12, &dir).await];
        for (leaf, port) in leaves.iter().zip(["swp1", "swp2"]) {
            cable(&leaf.switch, "swp31", &spine.name, port);
        }
        reconcile(&spine, &underlay(1, &["swp1", "swp2"]));
        for leaf in &mut leaves {
            let kind = proto_public::metalmesh::admin::v1::AgentKind::Core;
            let name = leaf.name();
            invite(client, kind, &name, &leaf.state_dir(), &leaf.ticket()).await;
            leaf.begin();
        }
        Self { leaves, spine }
    }
}
