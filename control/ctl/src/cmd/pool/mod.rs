//! `metalmesh pool`: pools of hosts that projects claim.

mod hold;
mod host;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Subcommand;
use proto_public::metalmesh::admin::v1::{
    HostPool, PoolServiceGetRequest, PoolServiceListClaimsRequest, PoolServiceListProjectsRequest,
    PoolServiceListRequest, PoolServiceRemoveRequest, PoolServiceSetProjectRequest,
    PoolServiceSetRequest,
};

use self::host::PoolHostCommand;
use super::given;
use crate::app::App;
use crate::files;
use crate::output::to_json;
use crate::text::pairs;

/// Full name of the message that a file holds.
const MESSAGE: &str = "metalmesh.admin.v1.HostPool";

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Create a pool, or replace all settings of one, as a file says.
    ///
    /// The file is YAML or JSON: `id`, `description`, `policies` (each with `name` and `allowAll`,
    /// `projects`, `pattern` or `labels`), `publishedLabels`, `wipeFloor` (erase or sanitize),
    /// `reuseMax`, `reuseFloor` (metadata, erase or sanitize), `metadata` (`labels` and `annotations`,
    /// each with `keys`, `prefixes` and `patterns`), `evictAfter`.
    Set {
        /// The file; `-` is stdin.
        #[arg(short = 'f', long, value_name = "FILE")]
        file: PathBuf,
        /// Refuse if the pool has another generation; 0 if there must be none.
        #[arg(long, value_name = "NUMBER")]
        generation: Option<u64>,
    },
    /// List pools with the numbers of their hosts.
    #[command(visible_alias = "list")]
    Ls,
    /// Show a pool with its policies, in the form of the file.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the pool.
        pool: String,
    },
    /// Delete a pool without hosts.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the pool.
        pool: String,
    },
    /// Manage the hosts of pools.
    #[command(subcommand)]
    Host(PoolHostCommand),
    /// List the claims of all projects with their machines.
    Claims {
        /// Only claims that have a host of this pool.
        #[arg(long, value_name = "POOL")]
        pool: Option<String>,
    },
    /// Set the alias and labels by which policies know a project.
    Project {
        /// Id or name of the project; without one all projects with labels are listed.
        name: Option<String>,
        /// Second name of the project, which patterns of policies read.
        #[arg(long, requires = "name", default_value = "")]
        alias: String,
        /// Label; all of them are replaced. Repeatable.
        #[arg(long = "label", value_name = "NAME=VALUE", requires = "name")]
        labels: Vec<String>,
    },
}

pub(crate) async fn run(app: &App, command: PoolCommand) -> Result<()> {
    let mut pools = app.client.pools();
    match command {
        PoolCommand::Set { file, generation } => {
            let request = PoolServiceSetRequest {
                pool: Some(from_file(&file)?),
                expected_generation: generation,
            };
            let answer = pools.set(request).await?.into_inner();
            app.output.one(&given(answer.pool)?)
        }
        PoolCommand::Ls => {
            let answer = pools.list(PoolServiceListRequest {}).await?;
            app.output.list(&answer.into_inner().pools)
        }
        PoolCommand::Show { pool } => {
            let answer = pools.get(PoolServiceGetRequest { pool }).await?;
            let pool = given(answer.into_inner().pool)?;
            app.output.value(&to_json(&pool)?)
        }
        PoolCommand::Rm { pool } => {
            let answer = pools.remove(PoolServiceRemoveRequest { pool }).await?;
            app.output.one(&given(answer.into_inner().pool)?)
        }
        PoolCommand::Host(command) => host::run(app, command).await,
        PoolCommand::Claims { pool } => {
            let project = app.project().await?.unwrap_or_default();
            let pool = pool.unwrap_or_default();
            let request = PoolServiceListClaimsRequest { pool, project };
            let answer = pools.list_claims(request).await?.into_inner();
            app.output.list(&answer.claims)
        }
        PoolCommand::Project { name: None, .. } => {
            let answer = pools
                .list_projects(PoolServiceListProjectsRequest {})
                .await?;
            app.output.list(&answer.into_inner().projects)
        }
        PoolCommand::Project {
            name: Some(name),
            alias,
            labels,
        } => {
            let request = PoolServiceSetProjectRequest {
                project: app.project_id(&name).await?,
                alias,
                labels: pairs(&labels)?,
            };
            let answer = pools.set_project(request).await?.into_inner();
            app.output.one(&given(answer.project)?)
        }
    }
}

fn from_file(path: &Path) -> Result<HostPool> {
    parse(&files::read(path)?).with_context(|| format!("{}", path.display()))
}

fn parse(text: &str) -> Result<HostPool> {
    let value = files::yaml(text)?;
    let message = proto_public::message(MESSAGE).context("unknown message type")?;
    let pool = proto_public::json::parse_strict(&message, value.to_string().as_bytes())?;
    Ok(pool.transcode_to()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_pool() {
        let text = "id: shared\npolicies:\n- name: all\n  allowAll: true\n\
                    publishedLabels: [infra-kind]\nwipeFloor: sanitize\nreuseMax: 3600s\n\
                    reuseFloor: metadata\nmetadata: {labels: {prefixes: [gpu-]}}\n";
        let pool = parse(text).unwrap();
        assert_eq!(pool.id, "shared");
        assert!(pool.policies[0].allow_all);
        assert_eq!(pool.reuse_max.unwrap().seconds, 3600);
        assert_eq!(pool.reuse_floor, "metadata");
        assert_eq!(pool.metadata.unwrap().labels.unwrap().prefixes, ["gpu-"]);
        let error = parse("id: shared\npolicy: []\n").unwrap_err();
        assert!(error.to_string().contains("policy"), "{error:#}");
    }
}
