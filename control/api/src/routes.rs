//! The routes of gRPC to all services.

use tonic::service::RoutesBuilder;

use crate::services::Services;
use crate::{admin, grpc, site, tenant};

impl Services {
    /// Adds the services to routes of gRPC; the front stands before them.
    pub fn add_to(&self, routes: &mut RoutesBuilder) {
        tenant::add(routes, self);
        admin::add(routes, self);
        site::add(routes, self);
        grpc::add(routes, self);
    }
}
