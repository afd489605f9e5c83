//! `metalmesh edit`: an object in an editor.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

use super::kind::{self, Kind};
use super::{Step, carry_out, check, read, told};
use crate::app::App;
use crate::files;

/// The editor of those who name none.
const EDITOR: &str = "vi";

/// Change an object in an editor.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// One of tenant, partition, size, size-image-constraint, image, filesystem-layout, network.
    kind: String,
    /// Its id.
    id: String,
}

/// Nothing changes when the editor fails, or when somebody else changed the object meanwhile.
pub(crate) async fn edit(app: &App, edit: &Edit) -> Result<()> {
    let kind = kind::of_command(&edit.kind)?;
    let there = read(app, kind, &edit.id).await?;
    let there = there.with_context(|| format!("there is no {} {:?}", kind.short, edit.id))?;
    let file = tempfile::Builder::new()
        .prefix("metalmesh-")
        .suffix(".yaml")
        .tempfile()
        .context("cannot make a file to edit")?;
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
    edit: &Edit,
    kind: &'static Kind,
    there: &Value,
    file: &Path,
) -> Result<Step> {
    let shown = kind.editable(&edit.id, there);
    std::fs::write(file, serde_norway::to_string(&shown)?)?;
    open(file)?;
    let text: Value = serde_norway::from_str(&files::read(file)?)?;
    if kind::of_document(&text)?.name != kind.name {
        bail!("kind: cannot be changed from {}", kind.name);
    }
    let wanted = kind.read(text.clone())?.whole(&shown, &text)?;
    if wanted.id != edit.id {
        bail!("{} cannot be renamed to {}", edit.id, wanted.id);
    }
    // Against what was shown: the server refuses when that is no longer what is there.
    let plan = kind.plan(Some(there), &wanted)?;
    if let Some((path, request)) = &plan.call {
        check(path, request)?;
    }
    carry_out(app, &plan).await?;
    Ok(Step {
        kind,
        id: wanted.id,
        plan,
    })
}

/// Opens a file in the user's editor, which may be a command with arguments, and waits for it.
fn open(file: &Path) -> Result<()> {
    let named = ["VISUAL", "EDITOR"].into_iter();
    let mut named = named.filter_map(|name| std::env::var(name).ok());
    let editor = named.find(|it| !it.trim().is_empty());
    let editor = editor.unwrap_or_else(|| EDITOR.to_owned());
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
