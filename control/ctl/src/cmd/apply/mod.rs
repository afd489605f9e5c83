//! `metalmesh apply`, which creates and changes objects as the documents of a file say, and
//! `metalmesh edit`, which lets an editor change the document of one object.

mod document;
mod edit;
mod kind;
mod plan;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use proto_public::json;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::app::App;
use crate::files;

pub(crate) use edit::{EditArgs, edit};

use document::ObjectDocument;
use kind::AppliedKind;
use plan::{ApplyPlan, FieldChange};

/// Most documents in one file. A file with more is refused before any object is read.
const DOCUMENTS_MAX: usize = 10_000;

/// Flags of `metalmesh apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// File with YAML documents or JSON; `-` is stdin.
    ///
    /// Each document has a `kind` beside its fields: Tenant, Partition, Size, SizeImageConstraint,
    /// Image, FilesystemLayout or Network. Fields that a document leaves out do not change.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
}

/// An object, and the plan that makes it what its document says.
struct ApplyStep {
    kind: &'static AppliedKind,
    id: String,
    plan: ApplyPlan,
}

/// Applies the documents of a file.
///
/// # Errors
/// A document is not valid, or the server refuses a call.
pub(crate) async fn apply(app: &App, apply: &ApplyArgs) -> Result<()> {
    // All documents are planned before the first call: a mistake in the last document changes
    // nothing.
    let mut steps = Vec::new();
    for (place, kind, wanted) in documents(&apply.file)? {
        let step = plan(app, kind, wanted).await;
        steps.push(step.with_context(|| place)?);
    }
    let mut done = Vec::new();
    for step in &steps {
        if !app.is_dry() {
            let carried_out = carry_out(app, &step.plan).await;
            carried_out.with_context(|| format!("{} {}", step.kind.short, step.id))?;
        }
        if app.output.is_table() {
            out!("{}", told(step, app.is_dry()));
        } else {
            done.push(as_json(step, app.is_dry()));
        }
    }
    if app.output.is_table() {
        return Ok(());
    }
    app.output.value(&Value::Array(done))
}

/// The documents of a file, each with its place in it.
fn documents(file: &Path) -> Result<Vec<(String, &'static AppliedKind, ObjectDocument)>> {
    let text = files::read(file)?;
    files::check_nesting(&text).with_context(|| file.display().to_string())?;
    let mut found = Vec::new();
    for (at, document) in serde_norway::Deserializer::from_str(&text).enumerate() {
        let place = format!("document {} of {}", at + 1, file.display());
        let value = Value::deserialize(document).with_context(|| place.clone())?;
        if value.is_null() {
            continue;
        }
        if found.len() == DOCUMENTS_MAX {
            bail!("{place}: a file has at most {DOCUMENTS_MAX} documents; split it");
        }
        let kind = kind::of_document(&value).with_context(|| place.clone())?;
        let wanted = kind.read(value).with_context(|| place.clone())?;
        found.push((place, kind, wanted));
    }
    Ok(found)
}

async fn plan(app: &App, kind: &'static AppliedKind, wanted: ObjectDocument) -> Result<ApplyStep> {
    let there = read(app, kind, &wanted.id).await?;
    let plan = kind.plan(there.as_ref(), &wanted)?;
    if let Some((path, request)) = &plan.call {
        check(path, request).with_context(|| format!("{} {}", kind.short, wanted.id))?;
    }
    Ok(ApplyStep {
        kind,
        id: wanted.id,
        plan,
    })
}

/// Reads an object. `None` means it does not exist.
async fn read(app: &App, kind: &AppliedKind, id: &str) -> Result<Option<Value>> {
    match call(app, kind.get, &kind.ask(id)).await {
        Ok(answer) => kind.answered(answer).map(Some),
        Err(error) => match error.downcast_ref::<Status>() {
            Some(status) if status.code() == Code::NotFound => Ok(None),
            _ => Err(error.context(format!("{} {id}", kind.short))),
        },
    }
}

/// Validates a request by the rules of the contract, as the server does.
fn check(path: &str, request: &Value) -> Result<()> {
    let method = proto_public::method(path).context("unknown method")?;
    let message = json::parse_strict(&method.input, request.to_string().as_bytes())?;
    Ok(proto_public::validate(&message, SystemTime::now())?)
}

async fn carry_out(app: &App, plan: &ApplyPlan) -> Result<()> {
    match &plan.call {
        Some((path, request)) => call(app, path, request).await.map(drop),
        None => Ok(()),
    }
}

/// Calls a method of the contract with JSON.
async fn call(app: &App, path: &str, request: &Value) -> Result<Value> {
    let method = proto_public::method(path).context("unknown method")?;
    let request = json::to_proto(&method.input, request.to_string().as_bytes())?;
    let answer = app.client.call(path, request.into()).await?;
    let answer = json::from_proto(&method.output, &answer)?;
    Ok(serde_json::from_slice(&answer)?)
}

/// The outcome of a plan in one word.
fn outcome(plan: &ApplyPlan) -> &'static str {
    match &plan.call {
        None => "unchanged",
        Some(_) if plan.changes.is_empty() => "created",
        Some(_) => "changed",
    }
}

fn told(step: &ApplyStep, is_dry: bool) -> String {
    let outcome = match (outcome(&step.plan), is_dry) {
        ("created", true) => "would be created",
        ("changed", true) => "would be changed",
        (outcome, _) => outcome,
    };
    let mut text = format!("{} {} {outcome}\n", step.kind.short, step.id);
    for FieldChange { field, from, to } in &step.plan.changes {
        text += &format!("  {field}: {from} -> {to}\n");
    }
    text
}

fn as_json(step: &ApplyStep, is_dry: bool) -> Value {
    let changes = step.plan.changes.iter();
    let changes: Vec<Value> = changes
        .map(|change| json!({ "field": change.field, "from": change.from, "to": change.to }))
        .collect();
    json!({
        "kind": step.kind.name, "id": step.id, "outcome": outcome(&step.plan),
        "dryRun": is_dry, "changes": changes,
    })
}
