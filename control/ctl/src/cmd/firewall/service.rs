//! The two services of firewall rules, as one.

use anyhow::{Context as _, Result};
use prost::Message;
use prost::bytes::Bytes;

use crate::app::App;

/// The service for the rules of a project, or for those of the operator. Messages are those of the
/// project's: the operator's have the same fields, but no project, so that one encoding is right for
/// both.
pub(super) struct RulesService<'a> {
    pub(super) app: &'a App,
    /// Empty means the operator's.
    pub(super) project: String,
}

impl<'a> RulesService<'a> {
    /// The service of the operator, or of the project that the command is about.
    pub(super) async fn of(app: &'a App, is_operator: bool) -> Result<Self> {
        let project = match is_operator {
            true => String::new(),
            false => app.need_project().await?,
        };
        Ok(Self { app, project })
    }

    /// Calls a method.
    pub(super) async fn call<A: Message + Default>(
        &self,
        method: &str,
        request: &impl Message,
    ) -> Result<A> {
        let service = match self.project.is_empty() {
            true => "OperatorRulesService",
            false => "FirewallRulesService",
        };
        let path = format!("/metalmesh.admin.v1.{service}/{method}");
        let request = Bytes::from(request.encode_to_vec());
        let answer = self.app.client.call(&path, request).await?;
        A::decode(answer).context("the server's answer cannot be read")
    }
}

#[cfg(test)]
mod tests {
    /// Methods of both services.
    const METHODS: [&str; 9] = [
        "Set",
        "RollBack",
        "Remove",
        "Get",
        "List",
        "ListHistory",
        "GetExplanation",
        "GetStatistics",
        "Try",
    ];

    #[test]
    fn the_messages_of_a_project_are_those_of_the_operator() {
        for method in METHODS {
            for part in ["Request", "Response"] {
                let message = |service: &str| {
                    let name = format!("metalmesh.admin.v1.{service}{method}{part}");
                    proto_public::message(&name).unwrap()
                };
                let operator = message("OperatorRulesService");
                for field in message("FirewallRulesService").fields() {
                    if (part, field.name()) == ("Request", "project") {
                        assert!(operator.get_field(field.number()).is_none(), "{method}");
                        continue;
                    }
                    let same = operator.get_field(field.number()).unwrap();
                    assert_eq!(same.name(), field.name(), "{method}{part}");
                    assert_eq!(same.kind(), field.kind(), "{method}{part}");
                }
            }
        }
    }
}
