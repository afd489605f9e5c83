//! Built-in users, for administrators.

use control_convert::{parse, time};
use control_front::listing::listing;
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state, too_often};
use control_state::{self as state, CreateUser, DeleteUser, SetPassword, StateError};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::LoginUser;
use proto_public::metalmesh::admin::v1::login_user_service_server::LoginUserService;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl LoginUserService for Services {
    async fn create(
        &self,
        request: Request<mesh::LoginUserServiceCreateRequest>,
    ) -> ApiResult<mesh::LoginUserServiceCreateResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let login = parse("login", &request.login)?;
        let name = match request.name.is_empty() {
            true => request.login,
            false => request.name,
        };
        let op = CreateUser {
            login,
            name,
            email: request.email,
            password: self.node.hasher.hash(request.password).await?,
        };
        let made = self.gate.propose(&caller, op).await?.user();
        ok(mesh::LoginUserServiceCreateResponse {
            user: Some(shown(made.map_err(of_state)?.as_ref())),
        })
    }

    async fn set_password(
        &self,
        request: Request<mesh::LoginUserServiceSetPasswordRequest>,
    ) -> ApiResult<mesh::LoginUserServiceSetPasswordResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let op = SetPassword {
            login: parse("login", &request.login)?,
            password: self.node.hasher.hash(request.password).await?,
        };
        let set = self.gate.propose(&caller, op).await?.user();
        ok(mesh::LoginUserServiceSetPasswordResponse {
            user: Some(shown(set.map_err(of_state)?.as_ref())),
        })
    }

    async fn change_password(
        &self,
        request: Request<mesh::LoginUserServiceChangePasswordRequest>,
    ) -> ApiResult<mesh::LoginUserServiceChangePasswordResponse> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let login = caller.login()?;
        // A stolen token must not serve to guess the password.
        let taken = self.node.hasher.may_guess(login.as_str(), self.gate.now());
        let text = "the old password was tried too often";
        taken.map_err(|wait_ms| too_often(text, wait_ms))?;
        let find = |tables: &state::Tables| Ok(tables.get::<state::User>(&login).cloned());
        let Some(user) = self.gate.read(&caller, find).await? else {
            let hint = "who logs in with a provider of OpenID Connect has the password there";
            return Err(of_state(StateError::not_found("user", &login).hint(hint)));
        };
        let hash = Some(user.password.clone());
        if !self.node.hasher.is(request.old_password, hash).await? {
            return Err(invalid("old_password", "is not the password that is set"));
        }
        let op = SetPassword {
            password: self.node.hasher.hash(request.new_password).await?,
            login,
        };
        let set = self.gate.propose(&caller, op).await?.user();
        ok(mesh::LoginUserServiceChangePasswordResponse {
            user: Some(shown(set.map_err(of_state)?.as_ref())),
        })
    }

    async fn remove(
        &self,
        request: Request<mesh::LoginUserServiceRemoveRequest>,
    ) -> ApiResult<mesh::LoginUserServiceRemoveResponse> {
        let caller = Caller::of(&request)?;
        let login = parse("login", &request.get_ref().login)?;
        let gone = self
            .gate
            .propose(&caller, DeleteUser { login })
            .await?
            .user();
        ok(mesh::LoginUserServiceRemoveResponse {
            user: Some(shown(gone.map_err(of_state)?.as_ref())),
        })
    }

    async fn list(
        &self,
        request: Request<mesh::LoginUserServiceListRequest>,
    ) -> ApiResult<mesh::LoginUserServiceListResponse> {
        let caller = Caller::of(&request)?;
        let users = self.gate.read(&caller, |tables| {
            Ok(tables.all::<state::User>().cloned().collect())
        });
        listing(users.await?, shown)
    }
}

fn shown(user: &state::User) -> LoginUser {
    LoginUser {
        login: user.login.to_string(),
        name: user.name.clone(),
        email: user.email.clone(),
        created_at: time(user.created_at),
        password_set_at: time(user.password_set_at),
        logged_in_at: user.logged_in_at.and_then(time),
    }
}
