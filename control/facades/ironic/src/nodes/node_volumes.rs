//! `/nodes/{node}/volume`: nodes of metalmesh have local disks alone, so that the lists are empty.

use serde_json::{Map, Value, json};

use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::list_scope;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::links;

/// `GET /nodes/{node}/volume`.
pub(super) fn show<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:volume:get").await?;
        let own = call.link(&format!("/nodes/{}/volume", node.id()));
        Ok(IronicAnswer::ok(json!({
            "connectors": links(&format!("{own}/connectors")),
            "targets": links(&format!("{own}/targets")),
            "links": links(&own),
        })))
    })
}

/// `GET /nodes/{node}/volume/connectors`.
pub(super) fn connectors<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(empty(call, "connectors"))
}

/// `GET /nodes/{node}/volume/targets`.
pub(super) fn targets<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(empty(call, "targets"))
}

async fn empty(call: &IronicCall<'_>, collection: &str) -> Result<IronicAnswer, IronicError> {
    call.node().await?;
    list_scope(call, "volume")?;
    let mut page = Map::new();
    page.insert(collection.to_owned(), json!([]));
    Ok(IronicAnswer::ok(Value::Object(page)))
}
