//! Nodes of Ironic's API over the machines of the filled directory.

use anyhow::Result;
use control_state::{EnrolNode, JsonFields, NodeContent};
use control_store::Store;
use proto_types::ResourceClass;
use tests_support::announcement;

use super::machines::machine_id;
use super::{each, propose};

/// Makes nodes with a name, fields and a resource class of the first `count` machines.
pub(super) async fn enrol(store: &Store, count: u32, class: &str) -> Result<()> {
    let class: ResourceClass = class.parse()?;
    // As the node announces itself: without it no command about nodes is accepted.
    propose(store, announcement(1)).await?;
    each(store, count, move |store, number| {
        node(store, number, class.clone())
    })
    .await
}

async fn node(store: Store, number: u32, class: ResourceClass) -> Result<()> {
    let op = EnrolNode {
        machine: machine_id(number),
        project: None,
        owner: None,
        resource_class: Some(class),
        content: content(number),
    };
    propose(&store, op).await.map(drop)
}

/// The fields that the bench gives to the nodes of Ironic. Each value is the text of a JSON value.
fn content(number: u32) -> NodeContent {
    let fields = |pairs: &[(&str, &str)]| -> JsonFields {
        let pairs = pairs.iter();
        let owned = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect()
    };
    NodeContent {
        name: Some(format!("node-{}", number + 1)),
        driver: "metalmesh".into(),
        driver_info: fields(&[("address", "\"bmc.example\"")]),
        properties: fields(&[
            ("cpus", "64"),
            ("memory_mb", "524288"),
            ("local_gb", "1920"),
            ("cpu_arch", "\"x86_64\""),
        ]),
        extra: fields(&[("rack", "\"rack-1\""), ("room", "\"room-1\"")]),
        ..NodeContent::default()
    }
}
