//! Watches: the four scopes of one thing.

use control_convert::parse;
use control_gate::Caller;
use control_watch::{Ask, Scope, WatchStream, open};
use proto_public::metalmesh::admin::v1::watch_service_server::WatchService;
use proto_public::metalmesh::admin::v1::{
    WatchServiceAllRequest, WatchServiceOwnRequest, WatchServiceProjectRequest,
    WatchServiceTenantRequest,
};
use tonic::{Request, Response, Status};

use crate::services::{Answer, Services};

#[tonic::async_trait]
impl WatchService for Services {
    async fn all(&self, request: Request<WatchServiceAllRequest>) -> Answer<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let ask = Ask {
            scope: Scope::All,
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, ask).await
    }

    async fn tenant(&self, request: Request<WatchServiceTenantRequest>) -> Answer<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let ask = Ask {
            scope: Scope::Tenant(parse("login", &request.login)?),
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, ask).await
    }

    async fn project(&self, request: Request<WatchServiceProjectRequest>) -> Answer<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let ask = Ask {
            scope: Scope::Project(parse("project", &request.project)?),
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, ask).await
    }

    async fn own(&self, request: Request<WatchServiceOwnRequest>) -> Answer<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let ask = Ask {
            scope: Scope::Own(caller.user.clone()),
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, ask).await
    }
}

impl Services {
    async fn watch(&self, caller: &Caller, ask: Ask) -> Result<Response<WatchStream>, Status> {
        Ok(Response::new(
            open(&self.gate, &self.node.watches, caller, ask).await?,
        ))
    }
}
