//! API tokens: creation, update, revocation, and the budget of their holder.

use proto_errors::{Error, ErrorCode};
use proto_types::TokenId;

use crate::cluster::read::settings;
use crate::fields::{check_description, set};
use crate::identity::command::{
    CreateComponentToken, CreateToken, RevokeToken, TouchToken, UpdateToken,
};
use crate::identity::entity::{
    TOKEN_METHODS_MAX, TOKEN_SUBJECT_BYTES_MAX, TOKEN_SUBJECTS_MAX, Token, TokenComponent,
    TokenType,
};
use crate::meta::Meta;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;
use crate::tenancy::apply::budget::{is_full, too_many};
use crate::tenancy::entity::{Project, WARRANT_LOGINS_MAX, Warrant};

/// Longest life of a token, milliseconds: 365 days, the bound of the contract. A longer one is
/// refused.
const LIFE_MAX_MS: u64 = 365 * 24 * 3_600_000;
/// Shortest time between two writes of a token's last use, milliseconds. Uses in between are not
/// recorded.
const TOUCH_MS: u64 = 5 * 60_000;

pub(crate) fn create(tx: &mut Tx<'_>, op: &CreateToken) -> ApplyResult {
    let token = made(tx, op)?;
    make_room(tx, &token)?;
    tx.create(token).map(Reply::Token)
}

/// Creates the token of a component. It has no roles, only the methods that it lists.
pub(crate) fn create_of_component(tx: &mut Tx<'_>, op: &CreateComponentToken) -> ApplyResult {
    tx.tables().require::<Project>(&op.component.project)?;
    let TokenComponent { kind, name, .. } = &op.component;
    if !(proto_types::is_name(name) && proto_types::is_hostname(name)) {
        let rule = "must be 2 to 64 of a-z, 0-9 and -";
        return Err(Error::invalid("name", rule));
    }
    let mut token = made(tx, &op.token)?;
    let has_roles = !token.project_roles.is_empty()
        || !token.tenant_roles.is_empty()
        || !token.machine_roles.is_empty()
        || token.admin_role.is_some()
        || token.infra_role.is_some();
    if has_roles || token.token_type != TokenType::Api || token.user != user_of(kind, name) {
        return Err(Error::invalid("token", "is not one of a component"));
    }
    token.component = Some(op.component.clone());
    make_room(tx, &token)?;
    tx.create(token).map(Reply::Token)
}

/// The user of a component's token. No login has this form.
pub fn user_of(kind: &str, name: &str) -> String {
    format!("component/{kind}/{name}")
}

fn made(tx: &Tx<'_>, op: &CreateToken) -> Result<Token, Error> {
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
        component: None,
        warrant: op.warrant.clone(),
        revoked_at: None,
        last_used: None,
    };
    check_rights(&token)?;
    Ok(token)
}

/// Checks the bounds of a token's subjects and methods: every call with the token reads all of them.
fn check_rights(token: &Token) -> CheckResult {
    let listed = token.permissions.iter().map(|entry| entry.subject.as_str());
    let roles = (token.project_roles.keys())
        .chain(token.tenant_roles.keys())
        .chain(token.machine_roles.keys());
    let subjects = || listed.clone().chain(roles.clone().map(String::as_str));
    if subjects().count() > TOKEN_SUBJECTS_MAX {
        let rule = format!(
            "a token names at most {TOKEN_SUBJECTS_MAX} subjects in roles and permissions; \
             \"*\" stands for all that its user is a member of"
        );
        return Err(Error::invalid("permissions", rule));
    }
    if subjects().any(|subject| subject.len() > TOKEN_SUBJECT_BYTES_MAX) {
        let rule = format!("a subject has at most {TOKEN_SUBJECT_BYTES_MAX} bytes");
        return Err(Error::invalid("permissions", rule));
    }
    let methods = token.permissions.iter().map(|entry| entry.methods.len());
    if methods.sum::<usize>() > TOKEN_METHODS_MAX {
        let rule = format!("a token lists at most {TOKEN_METHODS_MAX} methods over all subjects");
        return Err(Error::invalid("permissions", rule));
    }
    match &token.warrant {
        Some(Warrant::Members(logins)) if logins.len() > WARRANT_LOGINS_MAX => {
            let rule = format!("its rights were handed on more than {WARRANT_LOGINS_MAX} times");
            Err(Error::invalid("token", rule))
        }
        _ => Ok(()),
    }
}

pub(crate) fn update(tx: &mut Tx<'_>, op: &UpdateToken) -> ApplyResult {
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
    if op.drop_admin_role {
        token.admin_role = None;
    }
    if op.drop_infra_role {
        token.infra_role = None;
    }
    token.warrant = op.warrant.clone().or(token.warrant);
    if let Some(labels) = &op.labels {
        labels.apply(&mut token.meta.labels)?;
    }
    check_rights(&token)?;
    Ok(Reply::Token(tx.update(token)))
}

pub(crate) fn revoke(tx: &mut Tx<'_>, op: &RevokeToken) -> ApplyResult {
    let mut token: Token = tx.require(&op.id)?;
    if token.revoked_at.is_some() {
        return Ok(Reply::Token(tx.save(token)));
    }
    token.revoked_at = Some(tx.now);
    Ok(Reply::Token(tx.update(token)))
}

pub(crate) fn touch(tx: &mut Tx<'_>, op: &TouchToken) -> ApplyResult {
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

/// Makes room in the holder's budget for another token: deletes an expired or revoked one, or for a
/// login the oldest token of a login. A user cannot be locked out of its login by its own logins.
///
/// # Errors
/// `TooMany` if no token can be deleted.
pub(crate) fn make_room(tx: &mut Tx<'_>, new: &Token) -> Result<(), Error> {
    let Some(holder) = new.holder() else {
        return Ok(());
    };
    let budget = settings(tx.tables()).budgets.tokens_per_user;
    let held = tx.tables().index().holder_tokens.get(&holder);
    // Ids are UUIDv7: they are in the order of creation.
    let held: Vec<TokenId> = held.into_iter().flatten().copied().collect();
    if !is_full(held.len(), budget) {
        return Ok(());
    }
    let is_login = new.token_type == TokenType::User;
    let may_go = |id: &&TokenId, is_ended: bool| {
        let token = tx.get::<Token>(id);
        token.is_some_and(|token| match is_ended {
            true => !token.is_valid(tx.now),
            false => is_login && token.token_type == TokenType::User,
        })
    };
    let goes = held.iter().find(|id| may_go(id, true));
    let goes = goes.or_else(|| held.iter().find(|id| may_go(id, false)));
    let Some(goes) = goes.copied() else {
        let way_out = "revoke those that nobody needs: metalmesh token revoke ID; an \
                       administrator raises the bound: metalmesh settings set --tokens-per-user";
        return Err(too_many(&holder, held.len(), "tokens", way_out));
    };
    tx.delete::<Token>(&goes);
    Ok(())
}
