//! The connection, and finding things by what people call them.

use anyhow::{Context as _, Result, bail, ensure};
use control_client::{Client, Contexts, ENV_TOKEN_FILE, Settings};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    Machine, MachineAllocationQuery, MachineQuery, MachineServiceGetRequest,
    MachineServiceListRequest, Project, ProjectQuery, ProjectServiceListRequest,
};
use uuid::Uuid;

use crate::args::Global;
use crate::output::Format;

/// What a command works with.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) output: Format,
    pub(crate) settings: Settings,
    project: Option<String>,
    all: bool,
}

impl App {
    /// Reads the contexts and prepares the connection.
    pub(crate) fn new(global: &Global) -> Result<Self> {
        let path = Contexts::path(global.config.as_deref())?;
        let contexts = Contexts::load(&path)?;
        let mut settings = Settings::resolve(
            &contexts,
            global.context.as_deref(),
            global.api_url.as_deref(),
            |name| std::env::var(name).ok(),
        )?;
        if let Some(kept_back) = &settings.kept_back {
            noteln!(
                "note:  no token is sent to {}: that of context {:?} is for {}. To send one, name \
                 its file in {ENV_TOKEN_FILE}, or use a context of that server: --context NAME",
                settings.api_url,
                kept_back.context,
                kept_back.api_url
            );
        }
        settings.dry_run = global.dry_run;
        if global.dry_run {
            noteln!("dry run: nothing is changed; ids and secrets are not those of the real call");
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

    /// Whether nothing may be done.
    pub(crate) fn is_dry(&self) -> bool {
        self.settings.dry_run
    }

    /// Whether `--all` was asked for.
    pub(crate) fn everything(&self) -> bool {
        self.all
    }

    /// The project to work in, when one is named and `--all` is not.
    pub(crate) async fn project(&self) -> Result<Option<String>> {
        match &self.project {
            Some(project) if !self.all => self.project_id(project).await.map(Some),
            _ => Ok(None),
        }
    }

    /// The project to work in.
    pub(crate) async fn need_project(&self) -> Result<String> {
        let project = self.project().await?;
        project.context(
            "no project is named; use --project PROJECT, or once: metalmesh context set-project \
             PROJECT",
        )
    }

    /// A project's id by id or name.
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
                "{} projects are called {project:?}; use the id",
                found.len()
            ),
        }
    }

    /// Machines by query, in the project or, without one, all.
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

    /// One machine by id.
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

    /// A machine's id by id, the allocation's name or the beginning of the id.
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
        let mut found = if machine.chars().count() >= 2 {
            self.machines(query).await?
        } else {
            Vec::new()
        };
        if found.is_empty() && machine.len() >= 4 {
            found = self.machines(MachineQuery::default()).await?;
            found.retain(|known| known.uuid.starts_with(machine));
        }
        ensure!(
            found.len() < 2,
            "{} machines are called {machine:?}; use the id",
            found.len()
        );
        let one = found.pop();
        let one = one.with_context(|| {
            format!("there is no machine {machine:?}; see: metalmesh machine ls")
        })?;
        Ok(one.uuid)
    }
}
