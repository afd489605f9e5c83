//! Built-in users, and logins.

use proto_errors::{Error, ErrorCode};
use proto_types::TenantId;

use crate::fields;
use crate::identity::apply::token;
use crate::identity::command::{CreateUser, DeleteUser, LogIn, SetPassword};
use crate::identity::entity::{Token, TokenType, User};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;
use crate::tenancy::apply::tenant;
use crate::tenancy::command::CreateTenant;
use crate::tenancy::entity::Tenant;

/// Longest mail address, bytes; a longer one is refused.
const EMAIL_LEN_MAX: usize = 254;

pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateUser) -> ApplyResult {
    fields::check_name(&op.name)?;
    if op.email.len() > EMAIL_LEN_MAX {
        return Err(Error::invalid("email", "must have at most 254 bytes"));
    }
    if tx.get::<User>(&op.login).is_some() {
        return Err(Error::already_exists("user", &op.login));
    }
    let user = User {
        login: op.login.clone(),
        name: op.name.clone(),
        email: op.email.clone(),
        password: op.password.clone(),
        created_at: tx.now,
        password_set_at: tx.now,
        logged_in_at: None,
    };
    Ok(Reply::User(tx.save(user)))
}

/// Sets a password and revokes the tokens of earlier logins: they may be of somebody who knew the
/// old password.
pub(crate) fn set_password(tx: &mut Tx<'_>, op: &SetPassword) -> ApplyResult {
    let mut user: User = tx.require(&op.login)?;
    user.password = op.password.clone();
    user.password_set_at = tx.now;
    revoke(tx, &op.login, |token| token.token_type == TokenType::User);
    Ok(Reply::User(tx.save(user)))
}

/// Deletes a user and revokes all of its tokens. Its tenant, projects and memberships stay.
pub(crate) fn delete(tx: &mut Tx<'_>, op: &DeleteUser) -> ApplyResult {
    let user = tx.delete::<User>(&op.login);
    let user = user.ok_or_else(|| Error::not_found("user", &op.login))?;
    revoke(tx, &op.login, |_| true);
    Ok(Reply::User(user))
}

fn revoke(tx: &mut Tx<'_>, login: &TenantId, which: impl Fn(&Token) -> bool) {
    let now = tx.now;
    let all = tx.tables().all::<Token>();
    let theirs =
        all.filter(|token| token.user == login.as_str() && token.is_valid(now) && which(token));
    let theirs: Vec<Token> = theirs.map(|token| Token::clone(token)).collect();
    for mut token in theirs {
        token.revoked_at = Some(now);
        tx.update(token);
    }
}

/// Creates the token of a login, and the personal tenant if there is none. In one command: a token
/// without its tenant could do nothing.
pub(crate) fn log_in(tx: &mut Tx<'_>, op: &LogIn) -> ApplyResult {
    if op.token.user != op.login.as_str() || op.token.token_type != TokenType::User {
        let what = "the token of a login is its user's own";
        return Err(Error::new(ErrorCode::Internal, what));
    }
    match tx
        .get::<Tenant>(&op.login)
        .map(|tenant| Tenant::clone(tenant))
    {
        None => {
            let tenant = CreateTenant {
                login: op.login.clone(),
                name: op.name.clone(),
                email: op.email.clone(),
                description: String::new(),
                avatar_url: op.avatar_url.clone(),
                labels: Default::default(),
                owner: Some(op.login.clone()),
            };
            tenant::create_tenant(tx, &tenant)?;
        }
        Some(mut tenant) => {
            if !op.avatar_url.is_empty() && tenant.avatar_url != op.avatar_url {
                tenant.avatar_url.clone_from(&op.avatar_url);
                tx.update(tenant);
            }
        }
    }
    if let Some(mut user) = tx.get::<User>(&op.login).map(|user| User::clone(user)) {
        user.logged_in_at = Some(tx.now);
        tx.save(user);
    }
    token::create(tx, &op.token)
}
