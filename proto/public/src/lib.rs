//! The public v2 API as Rust types: messages, tonic clients and servers, descriptors, JSON.
//!
//! The contract is `proto/schema/metalstack` (wire-equal to the published version 0.8.4) and
//! `proto/schema/metalmesh` (`admin` and `tenant`), with gRPC's own services beside them. The build compiles it
//! without an installed protoc and fails when a method does not say who may call it and whether
//! it is audited (`build/lint.rs`).
//!
//! * [`api`], [`admin`], [`infra`], [`metalmesh`]: generated messages, clients and servers.
//! * [`pool`]: the descriptors for reflection; [`DESCRIPTORS`] is their encoded form.
//! * [`methods`] and [`method`]: every method with its path, messages and authorisation.
//! * [`Request`]: the method and the subject of a typed request.
//! * [`json`]: proto bytes to proto3 JSON and back, for the Connect protocol and the CLI.
//! * [`FieldFault`]: the field that is wrong in JSON that people wrote.
//! * [`RefusedField`]: the field of a request in JSON that a method of our own does not have.
//! * [`validate`], [`validate_request`]: the rules that the contract itself carries.
//! * [`one_spelling`]: rewrites the ids of a request to their canonical form.
//! * [`ListAnswer`]: the list field of a typed answer.
//! * [`MachinePlace`]: the parts that many machines of a list share, encoded once.
//! * [`enum_string`]: the short names of enum values ("waiting"), as clients print them.
//!
//! Invariants:
//! - every method declares exactly one kind of caller and whether it is audited; the build fails
//!   otherwise;
//! - only methods that everybody may call take a stream, because the gate checks one message;
//! - no policy: `control-authz` decides whether a caller is granted a method;
//! - a validation rule that [`validate`] does not implement fails the tests.

pub mod json;
mod json_fault;
mod json_strict;
mod listed;
mod method;
mod names;
mod spelling;
mod transcode;
mod validate;

pub use json_fault::{FieldFault, FieldStep, path_text};
pub use json_strict::RefusedField;
pub use listed::{ListAnswer, MachinePlace};
pub use method::{Method, Request, Scope, method, methods};
pub use names::{enum_number, enum_string};
pub use spelling::Spelling;
pub use validate::{Violation, Violations, one_spelling, validate, validate_request};

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, MessageDescriptor};

/// The encoded `FileDescriptorSet` of the contract and of all it imports.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the build wrote these bytes from a valid pool"
    )]
    DescriptorPool::decode(DESCRIPTORS).expect("embedded descriptors decode")
});

/// The descriptors of the contract; built on first use.
pub fn pool() -> &'static DescriptorPool {
    &POOL
}

/// The descriptor of a message by its full name, such as `metalstack.api.v2.Machine`.
pub fn message(full_name: &str) -> Option<MessageDescriptor> {
    pool().get_message_by_name(full_name)
}

/// Implementations of [`Request`], one for each method.
mod requests {
    include!(concat!(env!("OUT_DIR"), "/requests.rs"));
}

/// Implementations of [`ListAnswer`], one for each answer with a list.
mod lists {
    include!(concat!(env!("OUT_DIR"), "/lists.rs"));
}

/// Messages and services that tenants, projects and machines call.
pub mod api {
    /// Version 2.
    #[allow(missing_docs, clippy::all, unreachable_pub)]
    pub mod v2 {
        tonic::include_proto!("metalstack.api.v2");
    }
}

/// Messages and services for administrators.
pub mod admin {
    /// Version 2.
    #[allow(missing_docs, clippy::all, unreachable_pub)]
    pub mod v2 {
        tonic::include_proto!("metalstack.admin.v2");
    }
}

/// Messages and services for agents of the published stack.
pub mod infra {
    /// Version 2.
    #[allow(missing_docs, clippy::all, unreachable_pub)]
    pub mod v2 {
        tonic::include_proto!("metalstack.infra.v2");
    }
}

/// The published contract by its package, as messages of our own packages refer to it.
#[doc(hidden)]
pub mod metalstack {
    pub use crate::api;
}

/// Our own administration beside the published contract.
pub mod metalmesh {
    /// Enrolment of agents.
    pub mod admin {
        /// Version 1.
        #[allow(missing_docs, clippy::all, unreachable_pub)]
        pub mod v1 {
            tonic::include_proto!("metalmesh.admin.v1");
        }
    }
    /// Services of ours for tenants.
    pub mod tenant {
        /// Version 1.
        #[allow(missing_docs, clippy::all, unreachable_pub)]
        pub mod v1 {
            tonic::include_proto!("metalmesh.tenant.v1");
        }
    }
}

/// Services that gRPC defines for every server.
pub mod grpc {
    /// Probes.
    pub mod health {
        /// Version 1.
        #[allow(missing_docs, clippy::all, unreachable_pub)]
        pub mod v1 {
            tonic::include_proto!("grpc.health.v1");
        }
    }
}
