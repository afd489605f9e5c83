//! What policies decide: for whom it changes, and which rule it was.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use control_policy::{CallOutcome, MOMENTS, Sample, SitePolicies, callers, compare, decide_sample};
use proto_public::{Method, methods};
use serde_json::{Value, json};

use super::Against;
use crate::files;
use crate::output::{Format, print_table};

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A method: its path, or enough of its end, as MachineService/Delete.
    method: String,
    /// A sort of caller; without it all are shown.
    #[arg(long = "as", value_name = "CALLER")]
    caller: Option<String>,
    /// A file with fields of the request, JSON; - for stdin.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// The night of a Sunday instead of the noon of a Wednesday.
    #[arg(long)]
    night: bool,
    #[command(flatten)]
    pub(super) against: Against,
}

impl Explain {
    pub(super) fn asks_server(&self) -> bool {
        self.against.is_server()
    }
}

/// Prints who gains and who loses.
pub(super) fn diff(
    output: &Format,
    before: &Arc<SitePolicies>,
    after: &Arc<SitePolicies>,
) -> Result<()> {
    let changes = compare(before, after);
    if !output.is_table() {
        let values = changes.iter().map(|it| {
            json!({
                "method": it.method, "caller": it.caller, "when": it.moment,
                "before": it.before.to_string(), "after": it.after.to_string(),
                "change": word(&it.before, &it.after),
            })
        });
        return output.value(&values.collect());
    }
    let rows = changes.iter().map(|it| {
        vec![
            it.method.to_owned(),
            it.caller.to_owned(),
            it.moment.unwrap_or("always").to_owned(),
            word(&it.before, &it.after).to_owned(),
            it.before.to_string(),
            it.after.to_string(),
        ]
    });
    if !changes.is_empty() {
        print_table(
            &["method", "caller", "when", "change", "before", "after"],
            rows,
        );
    }
    let count = |wanted| {
        let all = changes.iter();
        all.filter(|it| word(&it.before, &it.after) == wanted)
            .count()
    };
    noteln!(
        "{} gained, {} lost, {} decided otherwise; rules about what a request says show in the \
         policies' own tests",
        count("gains"),
        count("loses"),
        count("other")
    );
    Ok(())
}

const fn word(before: &CallOutcome, after: &CallOutcome) -> &'static str {
    match (before.is_yes(), after.is_yes()) {
        (false, true) => "gains",
        (true, false) => "loses",
        _ => "other",
    }
}

/// Prints which rule decides.
pub(super) fn explain(output: &Format, asked: &Explain, site: &Arc<SitePolicies>) -> Result<()> {
    let method = method(&asked.method)?;
    let request = asked.request.as_deref().map(files::read).transpose()?;
    let request: Option<Value> = request
        .map(|text| serde_json::from_str(&text).context("the request is no JSON"))
        .transpose()?;
    let (name, moment) = MOMENTS[usize::from(asked.night)];
    let all = callers();
    let chosen: Vec<&Sample> = match &asked.caller {
        None => all.iter().collect(),
        Some(caller) => vec![sample(&all, caller)?],
    };
    let decided: Vec<_> = chosen
        .into_iter()
        .map(|it| {
            (
                it,
                decide_sample(site, method, it, moment, request.as_ref()),
            )
        })
        .collect();
    if !output.is_table() {
        let values = decided.iter().map(|(sample, (outcome, input))| {
            let input = input
                .as_deref()
                .and_then(|it| serde_json::from_str(it).ok());
            json!({
                "method": method.path, "caller": sample.name, "when": name,
                "permitted": outcome.is_yes(), "outcome": outcome.to_string(),
                "message": message(outcome), "input": input.unwrap_or(Value::Null),
            })
        });
        return output.value(&values.collect());
    }
    outln!("{} ({name} UTC)", method.path);
    let rows = decided.iter().map(|(sample, (outcome, _))| {
        vec![
            sample.name.to_owned(),
            sample.title.to_owned(),
            outcome.to_string(),
            message(outcome).to_owned(),
        ]
    });
    print_table(&["caller", "who that is", "outcome", "message"], rows);
    if !site.judges(method) {
        noteln!("No policy names this method: the contract's table decides.");
    }
    Ok(())
}

/// What a rule has told, or why there is none.
fn message(outcome: &CallOutcome) -> &str {
    match outcome {
        CallOutcome::NoBy(_, message) | CallOutcome::Broken(_, message) => message,
        CallOutcome::Yes(_) | CallOutcome::No(_) => "",
    }
}

fn sample<'a>(all: &'a [Sample], name: &str) -> Result<&'a Sample> {
    let found = all.iter().find(|it| it.name == name);
    found.with_context(|| {
        let names: Vec<&str> = all.iter().map(|it| it.name).collect();
        format!(
            "{name:?} is no sort of caller; they are {}",
            names.join(", ")
        )
    })
}

/// The method that people mean.
fn method(text: &str) -> Result<&'static Method> {
    let wanted = text.trim_start_matches('/');
    let is_meant = |it: &&'static Method| {
        let path = it.path.trim_start_matches('/');
        path == wanted
            || path
                .strip_suffix(wanted)
                .is_some_and(|before| before.ends_with(['.', '/']))
    };
    let found: Vec<&'static Method> = methods().iter().filter(is_meant).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => bail!("there is no method {text:?}; see them: metalmesh methods"),
        several => {
            let paths: Vec<&str> = several.iter().map(|it| it.path.as_str()).collect();
            bail!("{text:?} could be {}; say more of it", paths.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_go_by_the_ends_of_their_paths() {
        let path = |text| method(text).map(|it| it.path.as_str());
        let delete = "/metalstack.api.v2.MachineService/Delete";
        assert_eq!(path(delete).unwrap(), delete);
        assert_eq!(path("api.v2.MachineService/Delete").unwrap(), delete);
        let several = path("MachineService/Delete").unwrap_err().to_string();
        assert!(
            several.contains("or /metalstack.admin.v2.MachineService/Delete"),
            "{several}"
        );
        assert!(path("achineService/Delete").is_err());
        assert!(
            path("Nope")
                .unwrap_err()
                .to_string()
                .contains("metalmesh methods")
        );
    }
}
