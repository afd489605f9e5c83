//! Filters of the list of nodes.

use control_state::ProvisionState;
use control_state::query::node_state;
use proto_types::{MachineId, ProjectId, Timestamp};
use uuid::Uuid;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::listing::{flag, is_of};
use crate::view::{HARDWARE_TYPES, instance_uuid, maintenance_reason, stored};

/// The parameters of the list beside those of every list.
pub(super) const NODE_FILTERS: [&str; 20] = [
    "associated",
    "chassis_uuid",
    "conductor",
    "conductor_group",
    "description_contains",
    "driver",
    "fault",
    "include_children",
    "instance_name",
    "instance_uuid",
    "lessee",
    "maintenance",
    "owner",
    "parent_node",
    "project",
    "provision_state",
    "resource_class",
    "retired",
    "shard",
    "sharded",
];

/// Faults that nodes of Ironic can have. Those of metalmesh have none of them.
const FAULTS: [&str; 3] = ["power failure", "clean failure", "rescue abort failure"];

/// A text of a node that a parameter is compared with.
type NodeText = for<'a> fn(&'a SeenNode) -> Option<&'a str>;

/// Parameters that are compared with a text of the node.
const TEXTS: [(&str, NodeText); 4] = [
    ("conductor_group", |node| {
        Some(stored(node).conductor_group.as_str())
    }),
    ("driver", |node| Some(driver_name(node))),
    ("instance_name", |node| {
        Some(stored(node).instance_name.as_str())
    }),
    ("resource_class", |node| {
        let class = node.machine.capability.resource_class.as_ref();
        class.map(|class| class.as_str())
    }),
];

/// The nodes of a list by the node that they are a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeParent {
    /// Those that are a part of none.
    Top,
    /// All of them.
    Any,
    /// The parts of this one. `None` means a node that does not exist.
    Of(Option<MachineId>),
}

/// The filters of a list. A filter that is unset fits every node.
#[derive(Debug)]
pub(super) struct NodeFilter {
    /// Name of the conductor. All nodes have the same one.
    pub(super) conductor: Option<String>,
    /// The chassis.
    pub(super) chassis: Option<Uuid>,
    instance: Option<Uuid>,
    is_associated: Option<bool>,
    is_maintained: Option<bool>,
    is_retired: Option<bool>,
    is_sharded: Option<bool>,
    /// `false` asks for a fault, which no node has.
    is_faultless: Option<bool>,
    state: Option<ProvisionState>,
    parent: NodeParent,
    /// Names of shards; empty means any.
    shards: Vec<String>,
    description: Option<String>,
    texts: Vec<(NodeText, String)>,
    /// Ids of projects by parameter. `None` means a text that is the id of no project.
    projects: Vec<(&'static str, Option<ProjectId>)>,
}

/// The hardware type of a node.
pub(super) fn driver_name(node: &SeenNode) -> &str {
    match stored(node).driver.as_str() {
        "" => HARDWARE_TYPES[0],
        driver => driver,
    }
}

impl NodeFilter {
    /// The filters of a query. `find` finds the node that a parameter names.
    ///
    /// # Errors
    /// 400 for a malformed one.
    pub(super) fn parse(
        query: &[(String, String)],
        find: impl Fn(&str) -> Option<MachineId>,
    ) -> Result<Self, IronicError> {
        let asked = |name: &str| {
            let found = query.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let asked_flag = |name: &str| asked(name).map(|text| flag(name, text)).transpose();
        let asked_id = |name: &str| asked(name).map(|text| id(name, text)).transpose();
        let includes_children = asked_flag("include_children")?.unwrap_or(false);
        let parent = match asked("parent_node") {
            Some(ident) => NodeParent::Of(find(ident)),
            None if includes_children => NodeParent::Any,
            None => NodeParent::Top,
        };
        let texts = TEXTS.iter();
        let texts = texts.filter_map(|&(name, read)| Some((read, asked(name)?.to_owned())));
        let projects = ["owner", "lessee", "project"].into_iter();
        let projects =
            projects.filter_map(|name| Some((name, asked(name)?.parse::<ProjectId>().ok())));
        let shards = asked("shard").unwrap_or_default().split(',');
        let shards = shards.map(str::trim).filter(|shard| !shard.is_empty());
        Ok(Self {
            conductor: asked("conductor").map(str::to_owned),
            chassis: asked_id("chassis_uuid")?,
            instance: asked_id("instance_uuid")?,
            is_associated: asked_flag("associated")?,
            is_maintained: asked_flag("maintenance")?,
            is_retired: asked_flag("retired")?,
            is_sharded: asked_flag("sharded")?,
            is_faultless: asked("fault").map(is_faultless).transpose()?,
            state: asked("provision_state").map(state).transpose()?,
            parent,
            shards: shards.map(str::to_owned).collect(),
            description: asked("description_contains").map(str::to_owned),
            texts: texts.collect(),
            projects: projects.collect(),
        })
    }

    /// `true` if the node is a row of the list.
    pub(super) fn fits(&self, node: &SeenNode, now: Timestamp) -> bool {
        let content = stored(node);
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        let is_id = |wanted: Option<Uuid>, found: Option<Uuid>| wanted.is_none() || wanted == found;
        let mut texts = self.texts.iter();
        is(self.is_associated, instance_uuid(node).is_some())
            && is(self.is_maintained, maintenance_reason(node).is_some())
            && is(self.is_retired, content.retired.is_some())
            && is(self.is_sharded, !content.shard.is_empty())
            && is(self.is_faultless, true)
            && is_id(self.chassis, content.chassis)
            && is_id(self.instance, instance_uuid(node))
            && (self.shards.is_empty() || self.shards.contains(&content.shard))
            && self.fits_parent(content.parent)
            && texts.all(|(read, wanted)| read(node) == Some(wanted.as_str()))
            && self.fits_projects(node)
            && self
                .description
                .as_ref()
                .is_none_or(|part| content.description.contains(part.as_str()))
            && self.fits_state(node, now)
    }

    fn fits_parent(&self, parent: Option<MachineId>) -> bool {
        match self.parent {
            NodeParent::Any => true,
            NodeParent::Top => parent.is_none(),
            NodeParent::Of(wanted) => wanted.is_some() && parent == wanted,
        }
    }

    fn fits_projects(&self, node: &SeenNode) -> bool {
        self.projects.iter().all(|(parameter, project)| {
            project.is_some_and(|project| match *parameter {
                "owner" => node.owner() == Some(project),
                "lessee" => node.lessee() == Some(project),
                _ => is_of(node, project),
            })
        })
    }

    fn fits_state(&self, node: &SeenNode, now: Timestamp) -> bool {
        self.state.is_none_or(|wanted| {
            let record = node.record.as_deref();
            node_state(&node.machine, record, now).state == wanted
        })
    }
}

fn id(name: &str, text: &str) -> Result<Uuid, IronicError> {
    Uuid::parse_str(text).map_err(|_| {
        let text = format!("{name}: \"{text}\" must be a UUID");
        IronicError::invalid(text)
    })
}

fn state(text: &str) -> Result<ProvisionState, IronicError> {
    text.parse().map_err(|_| {
        let text = format!("Provision state \"{text}\" is not valid");
        IronicError::invalid(text)
    })
}

fn is_faultless(text: &str) -> Result<bool, IronicError> {
    if text == "none" {
        return Ok(true);
    }
    if FAULTS.contains(&text) {
        return Ok(false);
    }
    let known = FAULTS.join(", ");
    let text =
        format!("Unrecognized fault \"{text}\" is specified, allowed values are {known}, none");
    Err(IronicError::invalid(text))
}

#[cfg(test)]
mod tests {
    use control_state::{NodeContent, NodeMaintenance};
    use serde_json::json;

    use super::*;

    const OWNER: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
    const LESSEE: &str = "f11853c7-fa9c-4db3-a477-c9d8e0dbbf13";
    const ID: &str = "0e21d58f-5de2-4956-85ff-33935ea1ca01";

    fn filter(query: &str) -> Result<NodeFilter, IronicError> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let pairs: Vec<(String, String)> = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let parent = |ident: &str| (ident == "parent").then(|| MachineId::new(Uuid::nil()));
        NodeFilter::parse(&pairs, parent)
    }

    fn node() -> SeenNode {
        let machine = json!({
            "tenure": {"owner": OWNER, "lessee": LESSEE},
            "capability": {"resource_class": "rc1"},
        });
        let content = NodeContent {
            instance: Some(ID.parse().unwrap()),
            description: "a rack".to_owned(),
            shard: "s1".to_owned(),
            maintenance: Some(NodeMaintenance {
                reason: String::new(),
                since: Timestamp::ZERO,
            }),
            ..NodeContent::default()
        };
        SeenNode::of_json(machine, Some(content))
    }

    #[test]
    fn filters_choose_nodes() {
        let node = node();
        for (query, expected) in [
            ("", true),
            ("associated=True", true),
            ("associated=False", false),
            ("maintenance=True&retired=False", true),
            ("retired=true", false),
            ("provision_state=available", true),
            ("provision_state=manageable", false),
            ("driver=metalmesh", true),
            ("driver=ipmi", false),
            ("resource_class=rc1", true),
            ("resource_class=rc2", false),
            ("conductor_group=", true),
            ("fault=none", true),
            ("fault=power failure", false),
            ("shard=s0,s1", true),
            ("shard=s0", false),
            ("sharded=False", false),
            ("description_contains=rack", true),
            ("description_contains=room", false),
            ("include_children=True", true),
            ("parent_node=parent", false),
            ("parent_node=absent", false),
        ] {
            let fits = filter(query).unwrap().fits(&node, Timestamp::ZERO);
            assert_eq!(fits, expected, "{query}");
        }
    }

    #[test]
    fn filters_by_ids() {
        let node = node();
        let bare = OWNER.replace('-', "");
        for (query, expected) in [
            (format!("owner={OWNER}"), true),
            (format!("owner={bare}"), true),
            (format!("owner={LESSEE}"), false),
            ("owner=somebody".to_owned(), false),
            (format!("lessee={LESSEE}"), true),
            (format!("project={OWNER}"), true),
            (format!("project={LESSEE}"), true),
            (format!("project={ID}"), false),
            (format!("instance_uuid={ID}"), true),
            (format!("instance_uuid={OWNER}"), false),
            (format!("chassis_uuid={ID}"), false),
        ] {
            let fits = filter(&query).unwrap().fits(&node, Timestamp::ZERO);
            assert_eq!(fits, expected, "{query}");
        }
    }

    #[test]
    fn parts_of_nodes_are_listed_on_demand() {
        let content = NodeContent {
            parent: Some(Uuid::nil().into()),
            ..NodeContent::default()
        };
        let part = SeenNode::of_json(json!({}), Some(content));
        for (query, expected) in [
            ("", false),
            ("include_children=True", true),
            ("parent_node=parent", true),
            ("parent_node=absent", false),
        ] {
            let fits = filter(query).unwrap().fits(&part, Timestamp::ZERO);
            assert_eq!(fits, expected, "{query}");
        }
    }

    #[test]
    fn malformed_filters_are_refused() {
        for query in [
            "associated=x",
            "provision_state=nonsense",
            "chassis_uuid=x",
            "instance_uuid=x",
            "fault=x",
        ] {
            assert!(filter(query).is_err(), "{query}");
        }
    }
}
