//! When tokens were last used.

use control_convert::time;
use control_gate::Caller;
use control_state::{Tables, Token};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::TokenUse;
use proto_public::metalmesh::admin::v1::token_use_service_server::TokenUseService;
use tonic::Request;

use crate::services::{ApiResult, Services, ok};

#[tonic::async_trait]
impl TokenUseService for Services {
    async fn own(
        &self,
        request: Request<mesh::TokenUseServiceOwnRequest>,
    ) -> ApiResult<mesh::TokenUseServiceOwnResponse> {
        let caller = Caller::of(&request)?;
        let now = self.gate.now();
        let mine = |token: &Token| caller.manages(token) && token.is_valid(now);
        let uses = self.gate.read(&caller, |tables| Ok(uses(tables, mine)));
        ok(mesh::TokenUseServiceOwnResponse { uses: uses.await? })
    }

    async fn all(
        &self,
        request: Request<mesh::TokenUseServiceAllRequest>,
    ) -> ApiResult<mesh::TokenUseServiceAllResponse> {
        let caller = Caller::of(&request)?;
        let now = self.gate.now();
        let uses = self.gate.read(&caller, |tables| {
            Ok(uses(tables, |token| token.is_valid(now)))
        });
        ok(mesh::TokenUseServiceAllResponse { uses: uses.await? })
    }
}

fn uses(tables: &Tables, which: impl Fn(&Token) -> bool) -> Vec<TokenUse> {
    let used = |token: &Token| TokenUse {
        uuid: token.id.to_string(),
        last_used: token.last_used.and_then(time),
    };
    let all = tables.all::<Token>().filter(|token| which(token));
    all.map(|token| used(token)).collect()
}
