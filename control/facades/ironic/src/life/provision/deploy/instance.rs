//! The wish for an instance, from the fields of a node and a request.

use control_state::{JsonFields, NodeContent};
use proto_types::{ProjectId, is_hostname, is_name};
use serde_json::Value;

use super::config_drive::ConfigDrive;
use super::deploy_image::DeployImage;
use super::refused_fields::check_fields;
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::view::stored;

/// The instance that a deployment is to make of a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InstanceWish {
    /// The image.
    pub(super) image: DeployImage,
    /// The configuration drive.
    pub(super) drive: ConfigDrive,
    /// Display name of the machine.
    pub(super) name: String,
    /// Host name. `None` means that of the product.
    pub(super) hostname: Option<String>,
    /// The project that the fields name. `None` means that they name none.
    pub(super) project: Option<ProjectId>,
}

impl InstanceWish {
    /// The wish of a node. A drive of the request takes the place of the node's.
    ///
    /// # Errors
    /// 400 for fields that metalmesh cannot or must not obey.
    pub(super) fn of(node: &SeenNode, drive: &Value) -> Result<Self, IronicError> {
        let content = stored(node);
        let info = &content.instance_info;
        check_fields(info)?;
        let id = node.id().to_string();
        let own = value_field(info, "configdrive");
        let drive = ConfigDrive::parse(if drive.is_null() { &own } else { drive })?;
        let hostname = hostname(&drive, content);
        Ok(Self {
            image: DeployImage::of(info, &id)?,
            name: name(content, hostname.as_deref(), id),
            hostname,
            drive,
            project: project(info)?,
        })
    }
}

/// The value of a field; `Null` if it is not there.
pub(super) fn value_field(fields: &JsonFields, name: &str) -> Value {
    let text = fields.get(name);
    let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    value.unwrap_or(Value::Null)
}

/// A field that is a text. `None` for one that is not there, or is no text.
pub(super) fn text_field(fields: &JsonFields, name: &str) -> Option<String> {
    match value_field(fields, name) {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The host name of the drive, else the name of the node if it is one.
fn hostname(drive: &ConfigDrive, content: &NodeContent) -> Option<String> {
    let own = content.name.clone().filter(|name| is_hostname(name));
    drive.hostname.clone().or(own)
}

/// The first name that can be shown: of the instance, the host, the node; its id at last.
fn name(content: &NodeContent, hostname: Option<&str>, id: String) -> String {
    let names = [
        text_field(&content.instance_info, "display_name"),
        Some(content.instance_name.clone()),
        hostname.map(str::to_owned),
        content.name.clone(),
    ];
    let mut names = names.into_iter().flatten();
    names.find(|name| is_name(name)).unwrap_or(id)
}

fn project(info: &JsonFields) -> Result<Option<ProjectId>, IronicError> {
    let text = match value_field(info, "project_id") {
        Value::Null => return Ok(None),
        Value::String(text) => text,
        // Clients send an id that has no letters as a number.
        other => other.to_string(),
    };
    let project = text.parse().map_err(|_| {
        IronicError::invalid("instance_info/project_id: must be the id of a project, a UUID")
    })?;
    Ok(Some(project))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: Option<&str>, info: Value) -> SeenNode {
        let Value::Object(info) = info else {
            panic!("fields are an object");
        };
        let texts = info.into_iter();
        let content = NodeContent {
            name: name.map(str::to_owned),
            instance_info: texts
                .map(|(name, value)| (name, value.to_string()))
                .collect(),
            ..NodeContent::default()
        };
        SeenNode::of_json(json!({}), Some(content))
    }

    #[test]
    fn names_of_an_instance() {
        let id = "00000000-0000-0000-0000-000000000007";
        for (node_name, info, drive, name, hostname) in [
            (None, json!({}), json!({}), id, None),
            (Some("kn1"), json!({}), json!({}), "kn1", Some("kn1")),
            (Some("kn_1"), json!({}), json!({}), "kn_1", None),
            (
                Some("kn1"),
                json!({"display_name": "My web"}),
                json!({"meta_data": {"hostname": "web2"}}),
                "My web",
                Some("web2"),
            ),
            (
                Some("kn1"),
                json!({"display_name": "x"}),
                json!({"meta_data": {"hostname": "web2"}}),
                "web2",
                Some("web2"),
            ),
            (
                None,
                json!({"configdrive": {"meta_data": {"hostname": "own"}}}),
                Value::Null,
                "own",
                Some("own"),
            ),
        ] {
            let mut info = info;
            info["image_source"] = "debian-12".into();
            let wish = InstanceWish::of(&node(node_name, info), &drive).unwrap();
            assert_eq!(
                (wish.name.as_str(), wish.hostname.as_deref()),
                (name, hostname)
            );
        }
    }

    #[test]
    fn projects_of_an_instance() {
        let id = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
        let parsed: ProjectId = id.parse().unwrap();
        for (value, expected) in [
            (Value::Null, Ok(None)),
            (json!(id), Ok(Some(parsed))),
            (json!(id.replace('-', "")), Ok(Some(id.parse().unwrap()))),
            (json!("ada"), Err(())),
            (json!(7), Err(())),
        ] {
            let info = json!({"image_source": "debian-12", "project_id": value});
            let wish = InstanceWish::of(&node(None, info), &Value::Null);
            assert_eq!(wish.map(|wish| wish.project).map_err(drop), expected);
        }
    }
}
