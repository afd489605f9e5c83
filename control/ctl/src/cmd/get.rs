//! `metalmesh get`: objects of any kind, once or as they change.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use control_client::{Watch, WatchScope};
use prost::Message;
use proto_public::api::v2::UserServiceGetRequest;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchChangeType, WatchEvent};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::app::App;
use crate::kinds::{self, Known};
use crate::output::{Format, print_table};

/// Characters of the longest name of an event.
const EVENT_WIDTH: usize = 7;

/// Flags of `metalmesh get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// audit, filesystem-layout, image, ip, join-ticket, machine, network, partition, project,
    /// size, switch, task, tenant or token; the plural will do as well.
    kind: String,
    /// Only this object.
    id: Option<String>,
    /// Go on showing what changes, until interrupted.
    #[arg(short, long)]
    watch: bool,
    /// Show what changes, but not what is there.
    #[arg(long)]
    watch_only: bool,
    /// Of a tenant, its projects and its audit records: the tenant's login.
    #[arg(long, value_name = "LOGIN", conflicts_with_all = ["all", "project"])]
    tenant: Option<String>,
}

pub(crate) async fn run(app: &App, get: Get) -> Result<()> {
    let known = kinds::known(&get.kind)?;
    let id = match get.id.as_deref() {
        Some(id) => Some(real_id(app, known, id).await?),
        None => None,
    };
    let (mut watch, first) = begin(app, known, &get, id.as_deref()).await?;
    let mut view = View {
        output: &app.output,
        known,
        widths: Vec::new(),
    };
    if !get.watch_only {
        let there = rest_of_listing(&mut watch, first).await?;
        match (&id, there.as_slice()) {
            (Some(id), []) if !get.watch => {
                bail!("there is no {} {id:?} that you can see", known.name)
            }
            _ => view.listing(&there, id.is_some(), get.watch)?,
        }
        if !get.watch {
            return Ok(());
        }
    } else {
        rest_of_listing(&mut watch, first).await?;
        view.listing(&[], false, true)?;
    }
    loop {
        let event = tokio::select! {
            event = watch.next() => event?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        for change in &event.changes {
            view.change(change)?;
        }
    }
}

/// What people call by name has an id.
async fn real_id(app: &App, known: &Known, id: &str) -> Result<String> {
    match known.name {
        "machine" => app.machine_id(id).await,
        "project" => app.project_id(id).await,
        _ => Ok(id.to_owned()),
    }
}

/// The watch in the widest scope that the caller may see, of those that make sense.
async fn begin(
    app: &App,
    known: &Known,
    get: &Get,
    id: Option<&str>,
) -> Result<(Watch, WatchEvent)> {
    let mut refused: Option<Status> = None;
    for scope in scopes(app, known, get).await? {
        let kinds = vec![known.name.to_owned()];
        let mut watch = Watch::new(&app.client, scope, kinds, id.map(str::to_owned));
        match watch.next().await {
            Ok(first) => return Ok((watch, first)),
            // The first refusal is the one of what was asked for.
            Err(status) if status.code() == Code::PermissionDenied => {
                refused.get_or_insert(status);
            }
            Err(status) => return Err(status.into()),
        }
    }
    match refused {
        Some(status) => Err(status.into()),
        None => bail!(
            "name whose {} you want: --project PROJECT, --tenant LOGIN, or --all as an \
             administrator",
            known.plural
        ),
    }
}

async fn scopes(app: &App, known: &Known, get: &Get) -> Result<Vec<WatchScope>> {
    if let Some(login) = &get.tenant {
        return Ok(vec![WatchScope::Tenant(login.clone())]);
    }
    if app.everything() || known.is_admins_only() {
        return Ok(vec![WatchScope::All]);
    }
    let project = app.project().await?;
    Ok(match known.name {
        "ip" | "machine" | "network" => match project {
            Some(project) => vec![WatchScope::Project(project)],
            None => vec![WatchScope::All],
        },
        "project" | "tenant" | "audit" => {
            let mut scopes = vec![WatchScope::All];
            if let Some(login) = login(app).await {
                scopes.push(WatchScope::Tenant(login));
            }
            if known.name == "project" {
                scopes.extend(project.map(WatchScope::Project));
            }
            scopes
        }
        // What is everybody's, and one's own tokens.
        _ => vec![WatchScope::Own, WatchScope::All],
    })
}

/// The caller's login, if it may ask for it.
async fn login(app: &App) -> Option<String> {
    let answer = app
        .client
        .users()
        .get(UserServiceGetRequest {})
        .await
        .ok()?;
    Some(answer.into_inner().user?.login)
}

/// Everything up to the end of the listing.
async fn rest_of_listing(watch: &mut Watch, first: WatchEvent) -> Result<Vec<WatchChange>> {
    let mut there = first.changes;
    let mut listed = first.listed;
    while !listed {
        let event = watch.next().await?;
        there.extend(event.changes);
        listed = event.listed;
    }
    Ok(there)
}

/// Prints objects and what becomes of them.
struct View<'a> {
    output: &'a Format,
    known: &'static Known,
    /// Of the columns, while rows are added to a table.
    widths: Vec<usize>,
}

impl View<'_> {
    /// What is there: a whole table or document, or the beginning of a stream.
    fn listing(&mut self, there: &[WatchChange], is_one: bool, goes_on: bool) -> Result<()> {
        if goes_on {
            return self.stream(there);
        }
        if self.output.is_table() {
            let rows = there.iter().map(|it| self.cells(it));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            print_table(&self.titles(), rows);
            return Ok(());
        }
        let mut values = Vec::with_capacity(there.len());
        for change in there {
            values.push(object(change)?);
        }
        match (is_one, values.pop()) {
            (true, Some(one)) => self.output.value(&one),
            (_, last) => {
                values.extend(last);
                self.output.value(&Value::Array(values))
            }
        }
    }

    fn stream(&mut self, there: &[WatchChange]) -> Result<()> {
        if self.output.is_table() {
            let titles: Vec<String> = self.titles().iter().map(|it| it.to_uppercase()).collect();
            let mut rows = vec![[vec!["EVENT".to_owned()], titles].concat()];
            for change in there {
                rows.push(self.event_cells(change)?);
            }
            for row in &rows {
                self.widen(row);
            }
            rows.iter().for_each(|row| self.row(row));
            return Ok(());
        }
        there.iter().try_for_each(|change| self.change(change))
    }

    /// One change, on a line or as a document.
    fn change(&mut self, change: &WatchChange) -> Result<()> {
        match self.output {
            Format::Table | Format::Wide => {
                let row = self.event_cells(change)?;
                self.widen(&row);
                self.row(&row);
            }
            Format::JsonPath(template) => println!("{}", template.fill(&object(change)?)),
            Format::Json => println!("{}", event(change)?),
            Format::Yaml => {
                println!("---");
                self.output.value(&event(change)?)?;
            }
        }
        Ok(())
    }

    fn titles(&self) -> Vec<&'static str> {
        let mut titles = (self.known.titles)(self.output.is_wide());
        if self.output.is_wide() {
            titles.push("revision");
        }
        titles
    }

    fn cells(&self, change: &WatchChange) -> Result<Vec<String>> {
        let wide = self.output.is_wide();
        let mut cells = match &change.object {
            Some(object) => (self.known.cells)(&object.value, wide)?,
            None => {
                // It went while the server was away: its id is all that is known of it.
                let mut cells = vec!["-".to_owned(); (self.known.titles)(wide).len()];
                if let Some(first) = cells.first_mut() {
                    first.clone_from(&change.id);
                }
                cells
            }
        };
        if wide {
            cells.push(change.revision.to_string());
        }
        Ok(cells)
    }

    fn event_cells(&self, change: &WatchChange) -> Result<Vec<String>> {
        Ok([vec![event_name(change).to_owned()], self.cells(change)?].concat())
    }

    fn widen(&mut self, row: &[String]) {
        self.widths.resize(row.len(), 0);
        if let Some(event) = self.widths.first_mut() {
            *event = (*event).max(EVENT_WIDTH);
        }
        for (width, cell) in self.widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn row(&self, row: &[String]) {
        let cells = row.iter().zip(&self.widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:<width$}  "))
            .collect();
        println!("{}", line.trim_end());
    }
}

fn event_name(change: &WatchChange) -> &'static str {
    match change.r#type() {
        WatchChangeType::Present => "present",
        WatchChangeType::Created => "created",
        WatchChangeType::Changed => "changed",
        WatchChangeType::Deleted => "deleted",
        WatchChangeType::Unspecified => "-",
    }
}

/// An object as JSON, with its revision.
fn object(change: &WatchChange) -> Result<Value> {
    let Some(object) = &change.object else {
        return Ok(json!({ "id": change.id, "revision": change.revision }));
    };
    let name = object.type_url.rsplit('/').next().unwrap_or_default();
    let descriptor = proto_public::message(name)
        .with_context(|| format!("the server sent a {name:?}, which this program does not know"))?;
    let message = proto_public::json::decode(&descriptor, &object.value)?;
    let text = proto_public::json::print_full(&message)?;
    let mut fields: BTreeMap<String, Value> = serde_json::from_slice(&text)?;
    fields.insert("revision".to_owned(), json!(change.revision));
    Ok(json!(fields))
}

fn event(change: &WatchChange) -> Result<Value> {
    Ok(json!({
        "event": event_name(change), "kind": change.kind, "id": change.id,
        "revision": change.revision, "object": object(change)?,
    }))
}

/// Decodes an object of a kind; used by the table of kinds.
pub(crate) fn decoded<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).context("the server's object cannot be read")
}
