//! Decisions of policies for sample callers: their differences, and the rules behind them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use control_policy::{CallOutcome, MOMENTS, Sample, SitePolicies, callers, compare, decide_sample};
use proto_public::{Method, methods};
use serde_json::{Value, json};

use super::PolicyBaseArgs;
use crate::files;
use crate::output::{OutputFormat, print_table};

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    /// Method: its path, or a unique end of it, such as api.v2.MachineService/Delete.
    method: String,
    /// Show only this sample caller.
    #[arg(long = "as", value_name = "CALLER")]
    caller: Option<String>,
    /// File with fields of the request, JSON; - is stdin.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Decide for a Sunday night instead of a Wednesday noon.
    #[arg(long)]
    night: bool,
    #[command(flatten)]
    pub(super) against: PolicyBaseArgs,
}

impl PolicyExplainArgs {
    pub(super) fn asks_server(&self) -> bool {
        self.against.is_server()
    }
}

/// Prints the callers that gain or lose methods.
pub(super) fn diff(
    output: &OutputFormat,
    before: &Arc<SitePolicies>,
    after: &Arc<SitePolicies>,
) -> Result<()> {
    let changes = compare(before, after);
    if !output.is_table() {
        let values = changes.iter().map(|change| {
            json!({
                "method": change.method, "caller": change.caller, "when": change.moment,
                "before": change.before.to_string(), "after": change.after.to_string(),
                "change": word(&change.before, &change.after),
            })
        });
        return output.value(&values.collect());
    }
    let rows = changes.iter().map(|change| {
        vec![
            change.method.to_owned(),
            change.caller.to_owned(),
            change.moment.unwrap_or("always").to_owned(),
            word(&change.before, &change.after).to_owned(),
            change.before.to_string(),
            change.after.to_string(),
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
        all.filter(|change| word(&change.before, &change.after) == wanted)
            .count()
    };
    noteln!(
        "{} gained, {} lost, {} decided otherwise; rules about the content of requests are covered \
         by the policies' own tests",
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

/// Prints the deciding rule for each chosen caller.
pub(super) fn explain(
    output: &OutputFormat,
    asked: &PolicyExplainArgs,
    site: &Arc<SitePolicies>,
) -> Result<()> {
    let method = method(&asked.method)?;
    let request = asked.request.as_deref().map(files::read).transpose()?;
    let request: Option<Value> = request
        .map(|text| serde_json::from_str(&text).context("the request is not JSON"))
        .transpose()?;
    let (name, moment) = MOMENTS[usize::from(asked.night)];
    let all = callers();
    let chosen: Vec<&Sample> = match &asked.caller {
        None => all.iter().collect(),
        Some(caller) => vec![sample(&all, caller)?],
    };
    let decided: Vec<_> = chosen
        .into_iter()
        .map(|sample| {
            (
                sample,
                decide_sample(site, method, sample, moment, request.as_ref()),
            )
        })
        .collect();
    if !output.is_table() {
        let values = decided.iter().map(|(sample, (outcome, input))| {
            let input = input
                .as_deref()
                .and_then(|input| serde_json::from_str(input).ok());
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
        noteln!("No policy names this method; the built-in authorisation table decides.");
    }
    Ok(())
}

/// The message of a rule that refused the call, or of a policy that failed.
fn message(outcome: &CallOutcome) -> &str {
    match outcome {
        CallOutcome::NoBy(_, message) | CallOutcome::Broken(_, message) => message,
        CallOutcome::Yes(_) | CallOutcome::No(_) => "",
    }
}

fn sample<'a>(all: &'a [Sample], name: &str) -> Result<&'a Sample> {
    let found = all.iter().find(|sample| sample.name == name);
    found.with_context(|| {
        let names: Vec<&str> = all.iter().map(|sample| sample.name).collect();
        format!(
            "{name:?} is not a sample caller; the callers are {}",
            names.join(", ")
        )
    })
}

/// Finds a method by its path or a unique end of it.
fn method(text: &str) -> Result<&'static Method> {
    let wanted = text.trim_start_matches('/');
    let is_meant = |method: &&'static Method| {
        let path = method.path.trim_start_matches('/');
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
            let paths: Vec<&str> = several.iter().map(|method| method.path.as_str()).collect();
            bail!(
                "{text:?} could be {}; give more of the path",
                paths.join(" or ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_go_by_the_ends_of_their_paths() {
        let path = |text| method(text).map(|method| method.path.as_str());
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
