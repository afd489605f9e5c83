//! JSON of the state's rows: pure functions, apart from handlers.

mod allocation;
mod document;
mod hardware;
mod history;
mod inventory;
mod json;
mod network;
mod newer_fields;
mod node;
mod node_card;
mod node_fields;
mod node_info;
mod node_masks;
mod port;
mod portgroup;
mod power;
mod site;
mod state;
mod times;

pub(crate) use allocation::{allocation, stored_extra};
pub(crate) use document::{chassis, deploy_template, runbook};
pub(crate) use hardware::{bios_setting, bios_settings, firmware};
pub(crate) use history::{NumberedEvent, history_event, short_event};
pub(crate) use inventory::inventory;
pub(crate) use json::{link, links, object_of, text_or_null};
pub(crate) use network::{
    PortBinding, SubnetAddress, network, network_port, subnet, subnet_id, subnet_of_id,
};
pub(crate) use node::{NodeView, node, node_summary};
pub(crate) use node_card::{NodeCard, card_of_id, cards};
pub(crate) use node_fields::{INTERFACE_KINDS, NODE_FIELDS, has_node_field};
pub(crate) use node_info::{
    driver_info, found_driver_info, hardware_properties, instance_uuid, maintenance_reason,
    properties, stored,
};
pub(crate) use node_masks::NodeMasks;
pub(crate) use port::{PORT_FIELDS, has_port_field, port};
pub(crate) use portgroup::{PORTGROUP_FIELDS, has_portgroup_field, portgroup};
pub(crate) use power::{power_state, target_power_state};
pub(crate) use site::{HARDWARE_TYPES, conductor, conductor_name, driver, interfaces, shards};
pub(crate) use state::{ShownStates, states};
pub(crate) use times::{time, time_or_null};
