//! Sets up a fresh cluster: the built-in tenants and the first admin token.

use control_authz::{Permit, SystemActor};
use control_state::{
    Command, CreateTenant, CreateToken, EditorViewer, ErrorCode, Op, Reply, StateError, Tenant,
    TokenType, Warrant,
};
use control_store::{ProposeError, Store, StoreError};
use proto_types::{ParseError, TenantId, TokenId};
use uuid::Uuid;

use crate::token::{Issuer, TokenError, TokenKind};

/// Login of the built-in administrator.
pub const ADMIN_USER: &str = "admin";

/// The cluster cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The state cannot be read.
    #[error("the state cannot be read")]
    Store(#[from] StoreError),
    /// The state refused.
    #[error("the state refused the set-up")]
    Propose(#[from] ProposeError<StateError>),
    /// The state answered something else.
    #[error("the state answered something unexpected")]
    Reply(#[from] StateError),
    /// The token cannot be signed.
    #[error("the admin token cannot be signed")]
    Token(#[from] TokenError),
    /// The provider's login is no login.
    #[error("the provider's tenant cannot have this login")]
    Login(#[from] ParseError),
}

/// `true` if the set-up never completed: the provider's tenant, which is created last, is missing.
///
/// # Errors
/// See [`BootstrapError`].
pub async fn is_fresh(store: &Store, provider: &str) -> Result<bool, BootstrapError> {
    let provider: TenantId = provider.parse()?;
    Ok(store
        .read(|tables| tables.get::<Tenant>(&provider).is_none())
        .await?)
}

/// Creates the built-in tenants that are missing. The provider's comes last: it marks the set-up as
/// complete, so a crash in between repeats the set-up at the next start.
///
/// # Errors
/// See [`BootstrapError`].
pub async fn tenants(store: &Store, provider: &str) -> Result<(), BootstrapError> {
    let admin: TenantId = ADMIN_USER.parse()?;
    let provider: TenantId = provider.parse()?;
    for (login, name) in [(&admin, "Built-in administrator"), (&provider, "Provider")] {
        let op = CreateTenant {
            login: login.clone(),
            name: name.to_owned(),
            email: String::new(),
            description: String::new(),
            avatar_url: String::new(),
            labels: Default::default(),
            owner: Some(admin.clone()),
        };
        match propose(store, op).await {
            Err(ProposeError::Rejected(error)) if error.code == ErrorCode::AlreadyExists => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

/// Creates an admin token of the built-in administrator, valid for `life_ms` milliseconds.
///
/// # Errors
/// See [`BootstrapError`].
pub async fn admin_token(
    store: &Store,
    issuer: &Issuer,
    description: &str,
    life_ms: u64,
) -> Result<String, BootstrapError> {
    let op = CreateToken {
        id: TokenId::new(Uuid::now_v7()),
        user: ADMIN_USER.to_owned(),
        description: description.to_owned(),
        labels: Default::default(),
        permissions: Vec::new(),
        expires: store.now().plus_ms(life_ms),
        token_type: TokenType::Api,
        project_roles: Default::default(),
        tenant_roles: Default::default(),
        admin_role: Some(EditorViewer::Editor),
        infra_role: None,
        machine_roles: Default::default(),
        // The caller can read the cluster's keys, so the token depends on nobody's membership.
        warrant: Some(Warrant::Operator),
    };
    let token = propose(store, op).await?.token()?;
    let (issued, expires) = (token.issued_at.ms() / 1000, token.expires.ms() / 1000);
    Ok(issuer.sign(
        TokenKind::Api,
        &token.user,
        &token.id.to_string(),
        issued,
        expires,
    )?)
}

async fn propose(store: &Store, op: impl Into<Op>) -> Result<Reply, ProposeError<StateError>> {
    let permit = Permit::system(SystemActor::Bootstrap);
    let command = Command::new(store.now(), "metalmeshd", op);
    store.propose(&permit, &command).await
}
