//! When tokens were last used.

use control_convert::time;
use control_gate::Caller;
use control_state::{Tables, Token};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::TokenUse;
use proto_public::metalmesh::admin::v1::token_use_service_server::TokenUseService;
use tonic::Request;

use crate::services::{Answer, Services, ok};

#[tonic::async_trait]
impl TokenUseService for Services {
    async fn own(
        &self,
        request: Request<mesh::TokenUseServiceOwnRequest>,
    ) -> Answer<mesh::TokenUseServiceOwnResponse> {
        let caller = Caller::of(&request)?;
        let now = self.gate.now();
        let mine = |it: &Token| it.user == caller.user && it.is_valid(now);
        let uses = self.gate.read(&caller, |tables| Ok(uses(tables, mine)));
        ok(mesh::TokenUseServiceOwnResponse { uses: uses.await? })
    }

    async fn all(
        &self,
        request: Request<mesh::TokenUseServiceAllRequest>,
    ) -> Answer<mesh::TokenUseServiceAllResponse> {
        let caller = Caller::of(&request)?;
        let now = self.gate.now();
        let uses = self
            .gate
            .read(&caller, |tables| Ok(uses(tables, |it| it.is_valid(now))));
        ok(mesh::TokenUseServiceAllResponse { uses: uses.await? })
    }
}

fn uses(tables: &Tables, which: impl Fn(&Token) -> bool) -> Vec<TokenUse> {
    let used = |it: &Token| TokenUse {
        uuid: it.id.to_string(),
        last_used: it.last_used.and_then(time),
    };
    let all = tables.all::<Token>().filter(|it| which(it));
    all.map(|it| used(it)).collect()
}
