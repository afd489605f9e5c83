//! Watches, one method for each scope.

use control_convert::parse;
use control_gate::Caller;
use control_watch::{Scope, WatchQuery, WatchStream, open};
use proto_public::metalmesh::admin::v1::watch_service_server::WatchService;
use proto_public::metalmesh::admin::v1::{
    WatchServiceAllRequest, WatchServiceOwnRequest, WatchServiceProjectRequest,
    WatchServiceTenantRequest,
};
use tonic::{Request, Response, Status};

use crate::services::{ApiResult, Services};

#[tonic::async_trait]
impl WatchService for Services {
    async fn all(&self, request: Request<WatchServiceAllRequest>) -> ApiResult<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let query = WatchQuery {
            scope: Scope::All,
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, query).await
    }

    async fn tenant(&self, request: Request<WatchServiceTenantRequest>) -> ApiResult<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let query = WatchQuery {
            scope: Scope::Tenant(parse("login", &request.login)?),
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, query).await
    }

    async fn project(
        &self,
        request: Request<WatchServiceProjectRequest>,
    ) -> ApiResult<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let query = WatchQuery {
            scope: Scope::Project(parse("project", &request.project)?),
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, query).await
    }

    async fn own(&self, request: Request<WatchServiceOwnRequest>) -> ApiResult<WatchStream> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let query = WatchQuery {
            scope: Scope::Own(caller.user.clone()),
            kinds: request.kinds,
            id: request.id,
            from: request.from_revision,
        };
        self.watch(&caller, query).await
    }
}

impl Services {
    async fn watch(
        &self,
        caller: &Caller,
        query: WatchQuery,
    ) -> Result<Response<WatchStream>, Status> {
        Ok(Response::new(
            open(&self.gate, &self.node.watches, caller, query).await?,
        ))
    }
}
