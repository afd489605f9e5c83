//! The end of a login: the token, and the record in the audit trail.

use std::sync::Arc;

use bytes::Bytes;
use control_authz::{AuditedCall, Permit, Recorded, SystemActor};
use control_gate::refusal;
use control_state::{Command, CreateToken, LogIn, TokenType};
use control_store::CallEnd;
use http::Response;
use proto_types::{TenantId, TokenId};
use tonic::Code;
use uuid::Uuid;

use crate::failure::failed;
use crate::flow::Flow;
use crate::page;
use crate::provider::Person;
use crate::visit::Visit;
use crate::{FORM, Login};

impl Login {
    /// Makes the token and sends the browser on with it.
    pub(crate) async fn let_in(
        &self,
        visit: &Visit<'_>,
        flow: &Flow,
        person: Person,
        path: &str,
    ) -> Response<Bytes> {
        let call = self.call(visit, &person.login, path);
        match self.token(person, call).await {
            Ok(token) => {
                let mut to = flow.redirect.clone();
                to.query_pairs_mut().clear().append_pair("token", &token);
                page::redirect(&to, Some(&self.forget()))
            }
            Err(status) => failed(&status),
        }
    }

    /// Makes a user's token for a person, whose user and tenant are created at the first login.
    ///
    /// # Errors
    /// `invalid_argument` if the login is not a valid id; the refusal or failure of the store.
    async fn token(&self, person: Person, call: Arc<AuditedCall>) -> Result<String, tonic::Status> {
        let core = &self.core;
        let now = core.now();
        let login: TenantId = person.login.parse().map_err(|_| {
            let text = format!("{:?} cannot be a login", person.login);
            refusal::invalid("login", text)
        })?;
        let token = CreateToken {
            id: TokenId::new(Uuid::now_v7()),
            user: login.to_string(),
            description: "login".to_owned(),
            labels: Default::default(),
            permissions: Vec::new(),
            expires: now.plus_ms(self.settings.token_life_ms),
            token_type: TokenType::User,
            project_roles: Default::default(),
            tenant_roles: Default::default(),
            admin_role: None,
            infra_role: None,
            machine_roles: Default::default(),
            warrant: None,
        };
        let op = LogIn {
            name: person.name.unwrap_or_else(|| login.to_string()),
            email: person.email.unwrap_or_default(),
            avatar_url: person.picture.unwrap_or_default(),
            token,
            login,
        };
        let permit = Permit::system(SystemActor::Login).for_call(call);
        let command = Command::new(now, op.login.to_string(), op);
        let reply = core.store.propose(&permit, &command).await;
        let token = reply.map_err(refusal::of_propose)?.token();
        let token = token.map_err(refusal::of_state)?;
        core.sign(&token)
    }

    /// The audit record of a login by this path.
    fn call(&self, visit: &Visit<'_>, login: &str, path: &str) -> Arc<AuditedCall> {
        Arc::new(AuditedCall {
            id: Uuid::now_v7().to_string(),
            time_ms: self.core.now().ms(),
            user: login.to_owned(),
            tenant: login.to_owned(),
            project: None,
            method: path.to_owned(),
            body: None,
            rule: None,
            source_ip: visit.caller.to_string(),
            recorded: Recorded::default(),
        })
    }

    /// Records a refused login of an existing user. Unknown logins are not recorded: one may be a
    /// password that was typed into the wrong field.
    pub(crate) async fn record_refusal(&self, visit: &Visit<'_>, login: &str) {
        let end = CallEnd {
            call: self.call(visit, login, FORM),
            code: Code::Unauthenticated.into(),
            reason: None,
            time: self.core.now(),
        };
        self.core.audit.put(end).await;
    }
}
