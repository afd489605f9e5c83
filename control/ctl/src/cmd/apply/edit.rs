//! `metalmesh edit`: an object in an editor.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

use super::kind::{self, AppliedKind};
use super::{ApplyStep, carry_out, check, read, told};
use crate::app::App;
use crate::files;

/// The editor that runs if neither VISUAL nor EDITOR is set.
const EDITOR: &str = "vi";

/// Arguments of `metalmesh edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Kind: tenant, partition, size, size-image-constraint, image, filesystem-layout or network.
    kind: String,
    /// Id of the object.
    id: String,
}

/// Opens an object in an editor and applies the changes.
///
/// # Errors
/// The editor fails, the text is not valid, or the object was changed meanwhile. Nothing is changed
/// then, and the text is kept in a file.
pub(crate) async fn edit(app: &App, edit: &EditArgs) -> Result<()> {
    let kind = kind::of_command(&edit.kind)?;
    let there = read(app, kind, &edit.id).await?;
    let there = there.with_context(|| format!("there is no {} {:?}", kind.short, edit.id))?;
    let file = tempfile::Builder::new()
        .prefix("metalmesh-")
        .suffix(".yaml")
        .tempfile()
        .context("cannot create the file to edit")?;
    let changed = change(app, edit, kind, &there, file.path()).await;
    match changed {
        Ok(step) => {
            out!("{}", told(&step, false));
            Ok(())
        }
        Err(error) => {
            let (_, path) = file.keep()?;
            let kept = format!("nothing was changed; your text is in {}", path.display());
            Err(error.context(kept))
        }
    }
}

async fn change(
    app: &App,
    edit: &EditArgs,
    kind: &'static AppliedKind,
    there: &Value,
    file: &Path,
) -> Result<ApplyStep> {
    let shown = kind.editable(&edit.id, there);
    std::fs::write(file, serde_norway::to_string(&shown)?)?;
    open(file)?;
    let text = files::yaml(&files::read(file)?)?;
    if kind::of_document(&text)?.name != kind.name {
        bail!("kind: cannot be changed from {}", kind.name);
    }
    let wanted = kind.read(text.clone())?.whole(&shown, &text)?;
    if wanted.id != edit.id {
        bail!("{} cannot be renamed to {}", edit.id, wanted.id);
    }
    // The plan starts from the object that was shown, and carries its update time: the server
    // refuses the request if somebody changed the object meanwhile.
    let plan = kind.plan(Some(there), &wanted)?;
    if let Some((path, request)) = &plan.call {
        check(path, request)?;
    }
    carry_out(app, &plan).await?;
    Ok(ApplyStep {
        kind,
        id: wanted.id,
        plan,
    })
}

/// Opens a file in the user's editor and waits until it ends.
fn open(file: &Path) -> Result<()> {
    let named = ["VISUAL", "EDITOR"].into_iter();
    let mut named = named.filter_map(|name| std::env::var(name).ok());
    let editor = named.find(|editor| !editor.trim().is_empty());
    let editor = editor.unwrap_or_else(|| EDITOR.to_owned());
    // A shell runs it, because VISUAL and EDITOR may be commands with arguments.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .args(["sh".as_ref(), file.as_os_str()])
        .status()
        .with_context(|| format!("cannot run the editor {editor:?}"))?;
    if !status.success() {
        bail!("the editor {editor:?} ended with {status}");
    }
    Ok(())
}
