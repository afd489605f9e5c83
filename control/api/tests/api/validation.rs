//! The contract's own rules are asked before any handler.

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::node::Node;

#[tokio::test(flavor = "multi_thread")]
async fn broken_rules_are_named() {
    let node = Node::start().await;
    let mut sizes = admin::size_service_client::SizeServiceClient::new(node.as_admin());
    let size = api::Size {
        id: "x".into(),
        ..Default::default()
    };
    let request = admin::SizeServiceCreateRequest { size: Some(size) };
    let refused = sizes.create(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().contains("size.id"),
        "{}",
        refused.message()
    );
    let mut tokens = admin::token_service_client::TokenServiceClient::new(node.as_admin());
    for seconds in [599, 31_536_001] {
        let inner = api::TokenServiceCreateRequest {
            expires: Some(prost_types::Duration { seconds, nanos: 0 }),
            ..Default::default()
        };
        let request = admin::TokenServiceCreateRequest {
            user: Some("acme".into()),
            token_create_request: Some(inner),
        };
        let refused = tokens.create(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{seconds}");
    }
    node.stop().await;
}
