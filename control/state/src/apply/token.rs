//! Tokens.

use proto_errors::{Error, ErrorCode};

use super::tenancy::{check_description, set};
use crate::command::{CreateToken, RevokeToken, TouchToken, UpdateToken};
use crate::entities::{Meta, Token};
use crate::reply::Reply;
use crate::tables::Tx;

/// Longest life of a token, milliseconds: 365 days (the contract's bound).
const LIFE_MAX_MS: u64 = 365 * 24 * 3_600_000;
/// A last use is written again after this, milliseconds.
const TOUCH_MS: u64 = 5 * 60_000;

type Result = std::result::Result<Reply, Error>;

pub(super) fn create(tx: &mut Tx<'_>, op: &CreateToken) -> Result {
    check_description(&op.description)?;
    let life = op.expires.since_ms(tx.now);
    if life == 0 || life > LIFE_MAX_MS {
        return Err(Error::invalid("expires", "must be in the next 365 days"));
    }
    if op.user.is_empty() {
        return Err(Error::invalid("user", "must not be empty"));
    }
    let token = Token {
        id: op.id,
        user: op.user.clone(),
        meta: Meta::labelled(op.labels.clone()),
        description: op.description.clone(),
        permissions: op.permissions.clone(),
        expires: op.expires,
        issued_at: tx.now,
        token_type: op.token_type,
        project_roles: op.project_roles.clone(),
        tenant_roles: op.tenant_roles.clone(),
        admin_role: op.admin_role,
        infra_role: op.infra_role,
        machine_roles: op.machine_roles.clone(),
        revoked_at: None,
        last_used: None,
    };
    tx.create(token).map(Reply::Token)
}

pub(super) fn update(tx: &mut Tx<'_>, op: &UpdateToken) -> Result {
    let mut token: Token = tx.require(&op.id)?;
    op.lock.check("token", &op.id.to_string(), &token.meta)?;
    if !token.is_valid(tx.now) {
        return Err(Error::new(
            ErrorCode::TokenRevoked,
            format!("token \"{}\" is over", op.id),
        )
        .object("token", op.id));
    }
    if let Some(description) = &op.description {
        check_description(description)?;
    }
    set(&mut token.description, op.description.as_ref());
    set(&mut token.permissions, op.permissions.as_ref());
    set(&mut token.project_roles, op.project_roles.as_ref());
    set(&mut token.tenant_roles, op.tenant_roles.as_ref());
    set(&mut token.machine_roles, op.machine_roles.as_ref());
    token.admin_role = op.admin_role.or(token.admin_role);
    token.infra_role = op.infra_role.or(token.infra_role);
    if let Some(labels) = &op.labels {
        labels.apply(&mut token.meta.labels);
    }
    Ok(Reply::Token(tx.update(token)))
}

pub(super) fn revoke(tx: &mut Tx<'_>, op: &RevokeToken) -> Result {
    let mut token: Token = tx.require(&op.id)?;
    if token.revoked_at.is_some() {
        return Ok(Reply::Token(tx.save(token)));
    }
    token.revoked_at = Some(tx.now);
    Ok(Reply::Token(tx.update(token)))
}

pub(super) fn touch(tx: &mut Tx<'_>, op: &TouchToken) -> Result {
    let mut token: Token = tx.require(&op.id)?;
    if token
        .last_used
        .is_none_or(|used| tx.now.since_ms(used) >= TOUCH_MS)
    {
        token.last_used = Some(tx.now);
        tx.save(token);
    }
    Ok(Reply::None)
}
