//! Tokens that are bound to a partition, and other tokens of the same user.

use api::permissions_by_visibility::Visibility;
use api::token_service_client::TokenServiceClient;
use control_state::Token;
use proto_public::api::v2 as api;
use tonic::Code;

use crate::node::Node;
use crate::published_agents::commands;

const LABEL: &str = "metalmesh.dev/partition";

type Tokens = TokenServiceClient<crate::node::Wire>;

/// An infra token of the user `metal-stack`, which may call every method for own tokens: its id and
/// secret.
async fn agent_token(node: &Node, partition: Option<&str>) -> (String, String) {
    let label = |id: &str| (LABEL.to_owned(), id.to_owned());
    let path = |name: &str| format!("/metalstack.api.v2.TokenService/{name}");
    let methods = ["Get", "List", "Update", "Revoke"].map(path).to_vec();
    let own = Visibility::Self_(api::SelfPermissions { methods });
    let wanted = api::TokenServiceCreateRequest {
        infra_role: Some(api::InfraRole::Editor.into()),
        permissions: vec![api::PermissionsByVisibility {
            visibility: Some(own),
        }],
        labels: Some(api::Labels {
            labels: partition.map(label).into_iter().collect(),
        }),
        ..Default::default()
    };
    node.token_of("metal-stack", wanted).await
}

fn tokens(node: &Node, secret: &str) -> Tokens {
    TokenServiceClient::new(node.wire(Some(secret)))
}

fn stored(node: &Node, id: &str) -> Token {
    let id = id.parse().unwrap();
    let token = node
        .store
        .read_local(|tables| tables.get::<Token>(&id).cloned());
    Token::clone(&token.unwrap().unwrap())
}

fn raised(id: &str) -> api::TokenServiceUpdateRequest {
    api::TokenServiceUpdateRequest {
        uuid: id.to_owned(),
        infra_role: Some(api::InfraRole::Editor.into()),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_bound_token_manages_only_tokens_of_its_partition() {
    let node = Node::start().await;
    node.data_centre().await;
    let (own, secret) = agent_token(&node, Some("lab")).await;
    let mut bound = tokens(&node, &secret);
    for partition in [None, Some("other")] {
        let (id, _) = agent_token(&node, partition).await;
        let before = stored(&node, &id);
        let get = api::TokenServiceGetRequest { uuid: id.clone() };
        let revoke = api::TokenServiceRevokeRequest { uuid: id.clone() };
        let codes = [
            bound.get(get).await.unwrap_err().code(),
            bound.update(raised(&id)).await.unwrap_err().code(),
            bound.revoke(revoke).await.unwrap_err().code(),
        ];
        assert_eq!(codes, [Code::NotFound; 3], "{partition:?}");
        let after = stored(&node, &id);
        assert_eq!(after.meta.labels, before.meta.labels, "{partition:?}");
        assert_eq!(after.revoked_at, None, "{partition:?}");
    }
    let listed = bound.list(api::TokenServiceListRequest::default()).await;
    let listed = listed.unwrap().into_inner().tokens;
    let ids: Vec<&str> = listed.iter().map(|token| token.uuid.as_str()).collect();
    assert_eq!(ids, [own.as_str()]);
    // A token of its own partition it may change, and that one stays bound.
    let (sibling, _) = agent_token(&node, Some("lab")).await;
    bound.update(raised(&sibling)).await.unwrap();
    let label = stored(&node, &sibling);
    let label = label.meta.labels.get(LABEL);
    assert_eq!(label.map(String::as_str), Some("lab"));
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_bound_to_another_partition() {
    let node = Node::start().await;
    node.data_centre().await;
    let (uuid, secret) = agent_token(&node, Some("lab")).await;
    let mut open = commands(&node, &secret).await;
    let mut admin = tokens(&node, &agent_token(&node, None).await.1);
    let labels = [(LABEL.to_owned(), "other".to_owned())];
    let request = api::TokenServiceUpdateRequest {
        uuid,
        labels: Some(api::UpdateLabels {
            strategy: Some(api::update_labels::Strategy::Replace(api::Labels {
                labels: labels.into(),
            })),
        }),
        ..Default::default()
    };
    admin.update(request).await.unwrap();
    let ended = open.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Aborted, "{ended}");
}
