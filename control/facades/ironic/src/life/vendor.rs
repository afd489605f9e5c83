//! Vendor passthru and virtual media, which no agent of metalmesh has.

use serde_json::json;

use super::refusals::unsupported;
use crate::answer::IronicAnswer;
use crate::request::IronicCall;
use crate::route::HandlerFuture;

/// The rule for everything of vendors.
const PASS: &str = "baremetal:node:vendor_passthru";
/// The interface that has virtual media.
const MEDIA: &str = "virtual media";

/// `GET /nodes/{node}/vendor_passthru/methods`.
pub(super) fn methods<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        call.node_for(PASS).await?;
        Ok(IronicAnswer::ok(json!({})))
    })
}

/// A call of a method of a vendor.
pub(super) fn pass<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for(PASS).await?;
        Err(unsupported(&node, "vendor interface"))
    })
}

/// `GET /nodes/{node}/vmedia`.
pub(super) fn virtual_media<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:vmedia:get").await?;
        Err(unsupported(&node, MEDIA))
    })
}

/// `POST /nodes/{node}/vmedia`.
pub(super) fn attach_media<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:vmedia:attach").await?;
        Err(unsupported(&node, MEDIA))
    })
}

/// `DELETE /nodes/{node}/vmedia`.
pub(super) fn detach_media<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:vmedia:detach").await?;
        Err(unsupported(&node, MEDIA))
    })
}
