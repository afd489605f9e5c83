//! The steps from a policy's source to its program: interpreter, package, rules, bytecode.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::Program;
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Rc, Source};
use strum::VariantArray;

use crate::Invalid;
use crate::invalid::SourcePosition;
use crate::scan::{PlacedRule, is_listed, scan};
use crate::verb::Verb;

/// Maximum duration of one evaluation, for instructions that take long. Beyond it the evaluation
/// fails.
pub(crate) const TIME_MAX: Duration = Duration::from_millis(250);
/// Instructions between two checks of the clock.
const STEPS_BETWEEN_LOOKS: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);

/// The time limit of one evaluation.
pub(crate) fn timer() -> ExecutionTimerConfig {
    ExecutionTimerConfig {
        limit: TIME_MAX,
        check_interval: STEPS_BETWEEN_LOOKS,
    }
}

/// An interpreter that has loaded the policy. It parses the policy and runs its tests.
pub(crate) fn engine(name: &str, source: &str) -> Result<Engine, Invalid> {
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(true);
    engine.set_execution_timer_config(timer());
    let added = engine.add_policy(name.to_owned(), source.to_owned());
    added.map_err(|error| Invalid::of_engine(name, &error.to_string()))?;
    Ok(engine)
}

/// The policy's package with `data.` in front. It must consist of plain words.
pub(crate) fn package(name: &str, engine: &mut Engine) -> Result<String, Invalid> {
    let packages = engine.get_packages();
    let packages = packages.map_err(|error| Invalid::of_engine(name, &error.to_string()))?;
    let is_word = |part: &str| {
        let mut bytes = part.bytes();
        bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match packages.as_slice() {
        [package] if package.split('.').all(is_word) => Ok(package.clone()),
        _ => Err(Invalid::whole(
            name,
            "its package must be words with dots between: package site.night",
        )),
    }
}

/// The rules of the policy, after a check of their contents.
pub(crate) fn rules(
    name: &str,
    text: &Source,
    engine: &mut Engine,
) -> Result<Vec<PlacedRule>, Invalid> {
    let modules = engine.get_modules();
    let imports = modules.iter().flat_map(|module| &module.imports);
    for import in imports {
        let words = import.span.text();
        if !["rego.v1", "future.keywords"]
            .iter()
            .any(|allowed| words.contains(allowed))
        {
            let at = SourcePosition {
                line: import.span.line,
                column: import.span.col,
            };
            return Err(Invalid::at(
                name,
                at,
                "a policy imports nothing but rego.v1",
            ));
        }
    }
    let starts = modules.iter().flat_map(|module| &module.policy);
    let mut starts: Vec<SourcePosition> = starts
        .map(|rule| SourcePosition {
            line: rule.span().line,
            column: rule.span().col,
        })
        .collect();
    starts.sort_unstable();
    scan(name, text, &starts)
}

/// Entry points of the sets `deny`, `allow` and `allow_foreign`, in the order of [`Verb`].
/// `None` means that the policy does not define the set.
pub(crate) type EntryPoints = [Option<usize>; 3];

/// The bytecode, with the defined sets as entry points and `methods` as the last one.
pub(crate) fn program(
    name: &str,
    package: &str,
    rules: &[PlacedRule],
    engine: &mut Engine,
) -> Result<(Arc<Program>, EntryPoints), Invalid> {
    let of_engine = |error: &dyn std::fmt::Display| Invalid::of_engine(name, &error.to_string());
    let path = |rule: &str| format!("{package}.{rule}");
    let mut paths = Vec::new();
    let mut entries = EntryPoints::default();
    for verb in Verb::VARIANTS.iter().copied() {
        if rules.iter().any(|rule| rule.name == verb.name()) {
            entries[verb as usize] = Some(paths.len());
            paths.push(path(verb.name()));
        }
    }
    paths.push(path("methods"));
    let compiled = engine.compile_with_entrypoint(&Rc::from(path("methods")));
    let compiled = compiled.map_err(|error| of_engine(&error))?;
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let program = Compiler::compile_from_policy(&compiled, &paths);
    let program = program.map_err(|error| of_engine(&error))?;
    // `scan` has checked the calls in the source already. This second check is on the compiled
    // program: it holds even for a call that `scan` would not recognise.
    if let Some(other) = program
        .builtin_info_table
        .iter()
        .find(|builtin| !is_listed(&builtin.name) && !builtin.name.starts_with("__builtin_sets."))
    {
        let message = format!("{} is no function that a policy may call", other.name);
        return Err(Invalid::whole(name, message));
    }
    Ok((program, entries))
}
