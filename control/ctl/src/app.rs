//! The connection to the server, and the lookup of objects by name.

use anyhow::{Context as _, Result, bail, ensure};
use control_client::{Client, ClientSettings, ENV_TOKEN_FILE, ServerContexts};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Machine, MachineAllocationQuery, MachineQuery, MachineServiceGetRequest,
    MachineServiceListRequest, Project, ProjectQuery, ProjectServiceListRequest,
};
use uuid::Uuid;

use crate::global_flags::GlobalFlags;
use crate::output::OutputFormat;

/// Everything that a command needs: the connection, the output format and the chosen project.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) output: OutputFormat,
    pub(crate) settings: ClientSettings,
    /// Id or name of the project; `None` if neither a flag nor the context names one.
    project: Option<String>,
    /// `true` if `--all` was given.
    all: bool,
}

impl App {
    /// Reads the context file and prepares the connection.
    ///
    /// # Errors
    /// The context file cannot be read, no server is configured, or its URL or token is not valid.
    pub(crate) fn new(global: &GlobalFlags) -> Result<Self> {
        let path = ServerContexts::path(global.config.as_deref())?;
        let contexts = ServerContexts::load(&path)?;
        let mut settings = ClientSettings::resolve(
            &contexts,
            global.context.as_deref(),
            global.api_url.as_deref(),
            |name| std::env::var(name).ok(),
        )?;
        if let Some(kept_back) = &settings.kept_back {
            noteln!(
                "note:  no token is sent to {}: that of context {:?} is for {}. To send a token, \
                 set {ENV_TOKEN_FILE} to its file, or use a context of that server: --context NAME",
                settings.api_url,
                kept_back.context,
                kept_back.api_url
            );
        }
        settings.dry_run = global.dry_run;
        if global.dry_run {
            noteln!(
                "dry run: the server changes nothing; the real call gives other ids and secrets"
            );
        }
        let project = global
            .project
            .clone()
            .or_else(|| settings.default_project.clone());
        Ok(Self {
            client: Client::new(&settings)?,
            output: global.output.clone(),
            project,
            all: global.all,
            settings,
        })
    }

    /// `true` if `--dry-run` was given: the server changes nothing.
    pub(crate) fn is_dry(&self) -> bool {
        self.settings.dry_run
    }

    /// `true` if `--all` was given.
    pub(crate) fn everything(&self) -> bool {
        self.all
    }

    /// Id of the chosen project. `None` means no project is named, or `--all` was given.
    pub(crate) async fn project(&self) -> Result<Option<String>> {
        match &self.project {
            Some(project) if !self.all => self.project_id(project).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Id of the chosen project.
    ///
    /// # Errors
    /// No project is named, or no visible project has the name.
    pub(crate) async fn need_project(&self) -> Result<String> {
        let project = self.project().await?;
        project.context(
            "this command needs a project; use --project PROJECT, or set a default: \
             metalmesh context set-project PROJECT",
        )
    }

    /// Resolves a project's id or name to its id.
    pub(crate) async fn project_id(&self, project: &str) -> Result<String> {
        if Uuid::try_parse(project).is_ok() {
            return Ok(project.to_owned());
        }
        let query = ProjectQuery {
            name: Some(project.to_owned()),
            ..Default::default()
        };
        let request = ProjectServiceListRequest {
            query: Some(query.clone()),
        };
        // A refusal is no error yet: administrators without a role in the project find it by the
        // admin service below, and tenants by this one.
        let mut found: Vec<Project> = match self.client.projects().list(request).await {
            Ok(answer) => answer.into_inner().projects,
            Err(_) => Vec::new(),
        };
        if found.is_empty() {
            let request = admin::ProjectServiceListRequest { query: Some(query) };
            if let Ok(answer) = self.client.admin_projects().list(request).await {
                found = answer.into_inner().projects;
            }
        }
        match found.as_slice() {
            [one] => Ok(one.uuid.clone()),
            [] => bail!("there is no project {project:?} that you can see; try its id"),
            _ => bail!(
                "{} projects have the name {project:?}; use the id",
                found.len()
            ),
        }
    }

    /// Lists machines: those of the chosen project, or all machines without one.
    pub(crate) async fn machines(&self, query: MachineQuery) -> Result<Vec<Machine>> {
        if let Some(project) = self.project().await? {
            let request = MachineServiceListRequest {
                project,
                query: Some(query),
            };
            return Ok(self
                .client
                .machines()
                .list(request)
                .await?
                .into_inner()
                .machines);
        }
        let request = admin::MachineServiceListRequest { query: Some(query) };
        Ok(self
            .client
            .admin_machines()
            .list(request)
            .await?
            .into_inner()
            .machines)
    }

    /// Reads one machine.
    pub(crate) async fn machine(&self, uuid: &str) -> Result<Machine> {
        let machine = if let Some(project) = self.project().await? {
            let request = MachineServiceGetRequest {
                uuid: uuid.to_owned(),
                project,
            };
            self.client
                .machines()
                .get(request)
                .await?
                .into_inner()
                .machine
        } else {
            let request = admin::MachineServiceGetRequest {
                uuid: uuid.to_owned(),
            };
            self.client
                .admin_machines()
                .get(request)
                .await?
                .into_inner()
                .machine
        };
        machine.context("the server answered without a machine")
    }

    /// Resolves a machine's id, the name of its allocation or a prefix of its id to its id.
    pub(crate) async fn machine_id(&self, machine: &str) -> Result<String> {
        if Uuid::try_parse(machine).is_ok() {
            return Ok(machine.to_owned());
        }
        let allocation = MachineAllocationQuery {
            name: Some(machine.to_owned()),
            ..Default::default()
        };
        let query = MachineQuery {
            allocation: Some(allocation),
            ..Default::default()
        };
        // The contract refuses queries for names of one character.
        let mut found = if machine.chars().count() >= 2 {
            self.machines(query).await?
        } else {
            Vec::new()
        };
        // A prefix is matched here, over all machines: the query has no field for it. Shorter
        // prefixes would match machines that nobody meant.
        if found.is_empty() && machine.len() >= 4 {
            found = self.machines(MachineQuery::default()).await?;
            found.retain(|known| known.uuid.starts_with(machine));
        }
        ensure!(
            found.len() < 2,
            "{} machines match {machine:?}; use the id",
            found.len()
        );
        let one = found.pop();
        let one = one.with_context(|| {
            format!("no machine matches {machine:?}; see: metalmesh machine ls")
        })?;
        Ok(one.uuid)
    }
}
