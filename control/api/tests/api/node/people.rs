//! Tenants of a node, and their tokens.

use control_gate::token;
use control_state::{CreateToken, TokenType};
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_types::TokenId;
use uuid::Uuid;

use super::{LIFE_MS, Node};

impl Node {
    /// Tenant with a project; the project's id and an owner's token.
    pub(crate) async fn tenant(&self, login: &str) -> (String, String) {
        let wire = self.as_admin();
        let request = admin::TenantServiceCreateRequest {
            name: login.to_owned(),
            ..Default::default()
        };
        let mut tenants = admin::tenant_service_client::TenantServiceClient::new(wire.clone());
        tenants.create(request).await.unwrap();
        let request = api::ProjectServiceCreateRequest {
            login: login.to_owned(),
            name: format!("{login}-project"),
            description: String::new(),
            avatar_url: None,
            labels: None,
        };
        let mut projects = api::project_service_client::ProjectServiceClient::new(wire);
        let made = projects.create(request).await.unwrap().into_inner();
        let project = made.project.unwrap().uuid;
        let token = self.token(login, &project, api::ProjectRole::Owner).await;
        (project, token)
    }

    /// A token of a user with a role in a project.
    pub(crate) async fn token(&self, user: &str, project: &str, role: api::ProjectRole) -> String {
        let inner = api::TokenServiceCreateRequest {
            project_roles: [(project.to_owned(), role.into())].into(),
            ..Default::default()
        };
        self.token_of(user, inner).await.1
    }

    /// A token with any rights: its id and its secret.
    pub(crate) async fn token_of(
        &self,
        user: &str,
        inner: api::TokenServiceCreateRequest,
    ) -> (String, String) {
        let mut tokens = admin::token_service_client::TokenServiceClient::new(self.as_admin());
        let request = admin::TokenServiceCreateRequest {
            user: Some(user.to_owned()),
            token_create_request: Some(inner),
        };
        let made = tokens.create(request).await.unwrap().into_inner();
        (made.token.unwrap().uuid, made.secret)
    }

    /// A token as a log-in makes it: its rights are what its user's memberships give.
    pub(crate) async fn login(&self, user: &str) -> String {
        let made = self
            .hardware(CreateToken {
                id: TokenId::new(Uuid::now_v7()),
                user: user.to_owned(),
                description: String::new(),
                labels: Default::default(),
                permissions: Vec::new(),
                expires: self.store.now().plus_ms(LIFE_MS),
                token_type: TokenType::User,
                project_roles: Default::default(),
                tenant_roles: Default::default(),
                admin_role: None,
                infra_role: None,
                machine_roles: Default::default(),
                warrant: None,
            })
            .await
            .token()
            .unwrap();
        let issuer = token::issuer(&self.store, &self.seal, "https://test.example").await;
        let (issued, expires) = (made.issued_at.ms() / 1000, made.expires.ms() / 1000);
        let id = made.id.to_string();
        let signed = issuer
            .unwrap()
            .sign(token::TokenKind::User, user, &id, issued, expires);
        signed.unwrap()
    }

    /// A project's network out of the super network.
    pub(crate) async fn network(&self, token: &str, project: &str) -> String {
        let mut networks =
            api::network_service_client::NetworkServiceClient::new(self.wire(Some(token)));
        let request = api::NetworkServiceCreateRequest {
            project: project.to_owned(),
            name: Some("net".into()),
            partition: Some("lab".into()),
            ..Default::default()
        };
        networks
            .create(request)
            .await
            .unwrap()
            .into_inner()
            .network
            .unwrap()
            .id
    }
}
