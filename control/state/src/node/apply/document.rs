//! Documents: objects that only clients of OpenStack's APIs read.

use std::collections::BTreeSet;

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, ProjectId};
use uuid::Uuid;

use crate::fields::in_use;
use crate::meta::check_generation;
use crate::node::apply::content::check_field_names;
use crate::node::command::{DeleteNodeDocument, SetNodeDocument};
use crate::node::entity::{
    DocumentKind, NODE_DOCUMENT_BYTES_MAX, NODE_DOCUMENTS_MAX, NodeDocument, NodeRecord,
    fields_bytes,
};
use crate::node::read::project_documents;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};
use crate::tenancy::entity::Project;

/// Longest name of a document, bytes; a longer one is refused.
const DOCUMENT_NAME_MAX: usize = 255;

/// Creates a document, or replaces its fields.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetNodeDocument) -> ApplyResult {
    let known = tx
        .get::<NodeDocument>(&op.id)
        .map(|document| NodeDocument::clone(document));
    let generation = known.as_ref().map_or(0, |known| known.meta.generation);
    let key = op.id.to_string();
    check_generation("node-document", &key, generation, Some(op.expected))?;
    check_fields(op)?;
    check_name(tx.tables(), op)?;
    check_owner(tx.tables(), op, known.as_ref())?;
    let is_new = known.is_none();
    let document = NodeDocument {
        id: op.id,
        meta: known.map(|known| known.meta).unwrap_or_default(),
        kind: op.kind,
        name: op.name.clone(),
        owner: op.owner,
        public: op.public,
        fields: op.fields.clone(),
    };
    let document = match is_new {
        true => tx.create(document)?,
        false => tx.update(document),
    };
    Ok(Reply::NodeDocument(document))
}

/// Deletes a document that no node refers to.
pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteNodeDocument) -> ApplyResult {
    let document = tx.tables().require::<NodeDocument>(&op.id)?.clone();
    let nodes = tx.tables().index().nodes.chassis.get(&op.id);
    if let Some(node) = nodes.and_then(BTreeSet::first) {
        let kind = DocumentKind::Chassis.as_str();
        let error = in_use(kind, &op.id.to_string(), "node", &node.to_string());
        let hint = "take its nodes out of it first: baremetal node unset NODE --chassis-uuid";
        return Err(error.hint(hint));
    }
    tx.delete::<NodeDocument>(&op.id);
    Ok(Reply::NodeDocument(document))
}

/// Deletes the documents of a project that is deleted, and takes nodes out of its chassis.
pub(crate) fn forget_documents(tx: &mut Tx<'_>, project: ProjectId) {
    let tables = tx.tables();
    let kinds = DocumentKind::ALL.into_iter();
    let own = kinds.flat_map(|kind| project_documents(tables, Some(project), kind));
    let own: Vec<Uuid> = own.map(|document| document.id).collect();
    for id in own {
        let nodes = tx.tables().index().nodes.chassis.get(&id);
        for node in nodes.cloned().unwrap_or_default() {
            leave_chassis(tx, node);
        }
        tx.delete::<NodeDocument>(&id);
    }
}

fn leave_chassis(tx: &mut Tx<'_>, node: MachineId) {
    if let Ok(mut record) = tx.require::<NodeRecord>(&node) {
        record.content.chassis = None;
        tx.update(record);
    }
}

fn check_fields(op: &SetNodeDocument) -> CheckResult {
    check_field_names("fields", &op.fields)?;
    if fields_bytes(&op.fields) <= NODE_DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let rule = format!("must have at most {NODE_DOCUMENT_BYTES_MAX} bytes together");
    Err(Error::invalid("fields", rule))
}

/// Refuses a name that cannot be shown, or that another document of the kind has.
fn check_name(tables: &Tables, op: &SetNodeDocument) -> CheckResult {
    if op.name.is_empty() {
        return Ok(());
    }
    if op.name.len() > DOCUMENT_NAME_MAX || op.name.chars().any(char::is_control) {
        let rule = format!("must have at most {DOCUMENT_NAME_MAX} printable bytes");
        return Err(Error::invalid("name", rule));
    }
    if !op.kind.has_unique_names() {
        return Ok(());
    }
    let named = &tables.index().nodes.document_names;
    let named = named.get(&(op.kind, op.name.clone()));
    if named.is_some_and(|holders| holders.iter().any(|holder| *holder != op.id)) {
        return Err(Error::already_exists(op.kind.as_str(), &op.name));
    }
    Ok(())
}

/// Refuses an owner that does not exist or has as many documents as it may, and another kind than the
/// document has.
fn check_owner(tables: &Tables, op: &SetNodeDocument, known: Option<&NodeDocument>) -> CheckResult {
    if known.is_some_and(|known| known.kind != op.kind) {
        return Err(Error::invalid("kind", "of a document does not change"));
    }
    if known.is_some_and(|known| known.owner == op.owner) {
        return Ok(());
    }
    if let Some(owner) = op.owner {
        tables.require::<Project>(&owner)?;
    }
    let own = tables
        .index()
        .nodes
        .owned_documents
        .get(&(op.owner, op.kind));
    if own.map_or(0, BTreeSet::len) < NODE_DOCUMENTS_MAX {
        return Ok(());
    }
    let kind = op.kind;
    let message = format!("there are {NODE_DOCUMENTS_MAX} documents of kind {kind} of this owner");
    let hint = "delete those that are not needed";
    Err(Error::new(ErrorCode::TooMany, message).hint(hint))
}
