//! One policy, compiled.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use control_authz::{Widening, is_judged, widening};
use parking_lot::Mutex;
use proto_public::{Method, methods};
use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::{Program, RegoVM};
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Rc, Source, Value};
use strum::{IntoStaticStr, VariantArray};

use crate::Invalid;
use crate::scan::{Placed, is_listed, read, scan};
use crate::wants::Wants;

/// Longest source of one policy, in bytes.
pub const SOURCE_BYTES_MAX: usize = 64 * 1024;
/// Steps that one evaluation may take: some milliseconds.
pub const STEPS_MAX: usize = 50_000;
/// The same in time, for what takes long in one step.
const TIME_MAX: Duration = Duration::from_millis(250);
/// Steps between two looks at the clock.
const STEPS_BETWEEN_LOOKS: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);
/// Machines that a policy keeps for its next evaluations.
const MACHINES_MAX: usize = 16;
/// Longest name of a rule in a decision.
const RULE_LEN_MAX: usize = 64;
/// Longest message of a rule.
const MESSAGE_LEN_MAX: usize = 512;

/// The sets of rules that a policy may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Verb {
    Deny,
    Allow,
    AllowForeign,
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// A rule that fired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fired {
    pub(crate) rule: String,
    pub(crate) message: String,
}

/// A policy that can be evaluated.
#[derive(Debug)]
pub struct Compiled {
    name: String,
    package: String,
    program: Arc<Program>,
    /// Where the sets are among the program's entry points.
    entries: [Option<usize>; 3],
    /// By the method's index.
    methods: BTreeSet<usize>,
    /// Those of them that it names in full.
    named: BTreeSet<usize>,
    tests: Vec<Placed>,
    wants: Wants,
    machines: Mutex<Vec<RegoVM>>,
}

impl Compiled {
    /// Reads and compiles a policy; its tests are not run, see [`check`](crate::check).
    ///
    /// # Errors
    /// The first fault, with its line.
    pub fn new(name: &str, source: &str) -> Result<Self, Invalid> {
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!("it must have at most {SOURCE_BYTES_MAX} bytes");
            return Err(Invalid::whole(name, message));
        }
        let text = read(name, source)?;
        let mut engine = engine(name, source)?;
        let package = package(name, &mut engine)?;
        let rules = rules(name, &text, &mut engine)?;
        let missing = |it: &str| !rules.iter().any(|(rule, _)| rule == it);
        if missing("methods") {
            let message = "it must say which methods it judges: \
                           methods := {\"metalstack.api.v2.MachineService/Delete\"}";
            return Err(Invalid::whole(name, message));
        }
        if Verb::VARIANTS.iter().all(|verb| missing(verb.name())) {
            let message = "it must have one of the sets deny, allow and allow_foreign: \
                           deny contains \"its-name\" if { ... }";
            return Err(Invalid::whole(name, message));
        }
        let (program, entries) = program(name, &package, &rules, &mut engine)?;
        let mut tests = rules;
        tests.retain(|(it, _)| it.starts_with("test_"));
        tests.dedup_by(|next, first| next.0 == first.0);
        let mut compiled = Self {
            name: name.to_owned(),
            package,
            program,
            entries,
            methods: BTreeSet::new(),
            named: BTreeSet::new(),
            tests,
            wants: Wants::of(source),
            machines: Mutex::default(),
        };
        compiled.resolve_methods()?;
        compiled.check_widening()?;
        Ok(compiled)
    }

    /// As it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The methods that it judges, by their index.
    pub fn methods(&self) -> &BTreeSet<usize> {
        &self.methods
    }

    /// Paths of the methods that it judges.
    pub fn paths(&self) -> BTreeSet<String> {
        let paths = self.methods.iter().filter_map(|it| methods().get(*it));
        paths.map(|it| it.path.clone()).collect()
    }

    /// Names of its own tests.
    pub fn tests(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn placed_tests(&self) -> &[Placed] {
        &self.tests
    }

    /// Which parts of the input it looks at.
    pub(crate) fn wants(&self) -> &Wants {
        &self.wants
    }

    pub(crate) fn package(&self) -> &str {
        &self.package
    }

    pub(crate) fn has(&self, verb: Verb) -> bool {
        self.entries[verb as usize].is_some()
    }

    /// Whether it may open this method to those whom the table refuses.
    pub(crate) fn may_open(&self, method: &Method, verb: Verb) -> bool {
        let is_named = self.named.contains(&method.index);
        match (verb, widening(method)) {
            (Verb::Deny, _) => true,
            (_, Widening::Never) => false,
            (Verb::AllowForeign, _) | (Verb::Allow, Widening::Named) => is_named,
            (Verb::Allow, Widening::Any) => true,
        }
    }

    /// The rules of a set that fire for an input, in the order of their names.
    ///
    /// # Errors
    /// Why it could not be evaluated, in words that say nothing of the input.
    pub(crate) fn fired(&self, verb: Verb, input: &Value) -> Result<Vec<Fired>, String> {
        let Some(entry) = self.entries[verb as usize] else {
            return Ok(Vec::new());
        };
        self.run(entry, input.clone())
            .and_then(|value| fired(verb, &value))
    }

    fn run(&self, entry: usize, input: Value) -> Result<Value, String> {
        let mut machine = self.machine();
        machine.set_input(input);
        let result = machine.execute_entry_point_by_index(entry);
        machine.set_input(Value::Undefined);
        match result {
            Ok(value) => {
                let mut kept = self.kept();
                if kept.len() < MACHINES_MAX {
                    kept.push(machine);
                }
                Ok(value)
            }
            // What was left behind by a machine that stopped midway goes with it.
            Err(error) => Err(stopped(&error.to_string())),
        }
    }

    fn machine(&self) -> RegoVM {
        if let Some(machine) = self.kept().pop() {
            return machine;
        }
        let mut machine = RegoVM::new();
        machine.load_program(Arc::clone(&self.program));
        machine.set_max_instructions(STEPS_MAX);
        machine.set_strict_builtin_errors(true);
        machine.set_execution_timer_config(Some(timer()));
        machine
    }

    fn kept(&self) -> parking_lot::MutexGuard<'_, Vec<RegoVM>> {
        self.machines.lock()
    }

    /// Evaluates `methods`, once, without an input.
    fn resolve_methods(&mut self) -> Result<(), Invalid> {
        let whole = |message: String| Invalid::whole(&self.name, format!("methods: {message}"));
        let entry = self.program.get_entry_points().len() - 1;
        let value = self.run(entry, Value::Undefined).map_err(whole)?;
        let texts: Option<Vec<String>> = match &value {
            Value::Set(items) => items.iter().map(text).collect(),
            Value::Array(items) => items.iter().map(text).collect(),
            _ => None,
        };
        let texts = texts
            .filter(|it| !it.is_empty())
            .ok_or_else(|| whole("must be a set of texts, without looking at the input".into()))?;
        let (mut all, mut named) = (BTreeSet::new(), BTreeSet::new());
        for wanted in texts {
            let found = matching(&wanted);
            if found.is_empty() {
                let message = format!(
                    "{wanted:?} is no method; write one like \
                     \"metalstack.api.v2.MachineService/Delete\", or a begin and *"
                );
                return Err(whole(message));
            }
            if found.iter().all(|it| !is_judged(it)) {
                return Err(whole(format!("{wanted:?} is never judged by a policy")));
            }
            let found = found.into_iter().filter(|it| is_judged(it));
            let found: Vec<usize> = found.map(|it| it.index).collect();
            if !wanted.ends_with('*') {
                named.extend(&found);
            }
            all.extend(found);
        }
        (self.methods, self.named) = (all, named);
        Ok(())
    }

    /// An allowing set that can open nothing is a mistake.
    fn check_widening(&self) -> Result<(), Invalid> {
        for verb in [Verb::Allow, Verb::AllowForeign] {
            let all = self.methods.iter().filter_map(|it| methods().get(*it));
            let mut all = all.peekable();
            if !self.has(verb) || all.any(|it| self.may_open(it, verb)) {
                continue;
            }
            let message = format!(
                "{} can open none of its methods: those that hand out rights, and those of agents \
                 and machines, are never opened; those of administrators, GetBMC and everything \
                 for allow_foreign only when named in full",
                verb.name()
            );
            return Err(Invalid::whole(&self.name, message));
        }
        Ok(())
    }
}

/// The bound of one evaluation's time.
pub(crate) fn timer() -> ExecutionTimerConfig {
    ExecutionTimerConfig {
        limit: TIME_MAX,
        check_interval: STEPS_BETWEEN_LOOKS,
    }
}

/// The interpreter with a policy in it: what reads it, and what runs its tests.
pub(crate) fn engine(name: &str, source: &str) -> Result<Engine, Invalid> {
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(true);
    engine.set_execution_timer_config(timer());
    let added = engine.add_policy(name.to_owned(), source.to_owned());
    added.map_err(|error| Invalid::of_engine(name, &error.to_string()))?;
    Ok(engine)
}

/// `data.` and the policy's package, which must be plain.
fn package(name: &str, engine: &mut Engine) -> Result<String, Invalid> {
    let packages = engine.get_packages();
    let packages = packages.map_err(|error| Invalid::of_engine(name, &error.to_string()))?;
    let is_word = |part: &str| {
        let mut bytes = part.bytes();
        bytes
            .next()
            .is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
            && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    match packages.as_slice() {
        [package] if package.split('.').all(is_word) => Ok(package.clone()),
        _ => Err(Invalid::whole(
            name,
            "its package must be words with dots between: package site.night",
        )),
    }
}

/// Names of the rules, after a look at what they are made of.
fn rules(name: &str, text: &Source, engine: &mut Engine) -> Result<Vec<Placed>, Invalid> {
    let modules = engine.get_modules();
    let imports = modules.iter().flat_map(|it| &it.imports);
    for import in imports {
        let words = import.span.text();
        if !["rego.v1", "future.keywords"]
            .iter()
            .any(|it| words.contains(it))
        {
            let at = (import.span.line, import.span.col);
            return Err(Invalid::at(
                name,
                at,
                "a policy imports nothing but rego.v1",
            ));
        }
    }
    let starts = modules.iter().flat_map(|it| &it.policy);
    let mut starts: Vec<(u32, u32)> = starts
        .map(|rule| (rule.span().line, rule.span().col))
        .collect();
    starts.sort_unstable();
    scan(name, text, &starts)
}

type Entries = [Option<usize>; 3];

/// The bytecode, with the sets that are there as entry points, and `methods` as the last.
fn program(
    name: &str,
    package: &str,
    rules: &[Placed],
    engine: &mut Engine,
) -> Result<(Arc<Program>, Entries), Invalid> {
    let of_engine = |error: &dyn std::fmt::Display| Invalid::of_engine(name, &error.to_string());
    let path = |rule: &str| format!("{package}.{rule}");
    let mut paths = Vec::new();
    let mut entries = Entries::default();
    for verb in Verb::VARIANTS.iter().copied() {
        if rules.iter().any(|(it, _)| it == verb.name()) {
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
    // `scan` has seen them in the words already.
    if let Some(other) = program
        .builtin_info_table
        .iter()
        .find(|it| !is_listed(&it.name) && !it.name.starts_with("__builtin_sets."))
    {
        let message = format!("{} is no function that a policy may call", other.name);
        return Err(Invalid::whole(name, message));
    }
    Ok((program, entries))
}

/// The methods that a text of `methods` means.
fn matching(wanted: &str) -> Vec<&'static Method> {
    let wanted = wanted.trim_start_matches('/');
    let path = |it: &'static Method| it.path.trim_start_matches('/');
    match wanted.strip_suffix('*') {
        Some(begin) => {
            let all = methods().iter();
            all.filter(|it| path(it).starts_with(begin)).collect()
        }
        None => methods().iter().filter(|it| path(it) == wanted).collect(),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_string().ok().map(|it| it.to_string())
}

/// Names and messages out of a set.
pub(crate) fn fired(verb: Verb, value: &Value) -> Result<Vec<Fired>, String> {
    let items = match value {
        Value::Undefined => return Ok(Vec::new()),
        Value::Set(items) => items,
        _ => return Err(format!("{} is not a set", verb.name())),
    };
    let one = |item: &Value| -> Option<Fired> {
        let (rule, message) = match item {
            Value::String(rule) => (rule.to_string(), String::new()),
            Value::Object(_) => {
                let message = text(&item["message"]).unwrap_or_default();
                (text(&item["rule"])?, message)
            }
            _ => return None,
        };
        let letters = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
        let fits = (1..=RULE_LEN_MAX).contains(&rule.len()) && rule.bytes().all(letters);
        let message = message.chars().filter(|it| !it.is_control());
        fits.then(|| Fired {
            rule,
            message: message.take(MESSAGE_LEN_MAX).collect(),
        })
    };
    let found: Option<Vec<Fired>> = items.iter().map(one).collect();
    let mut found = found.ok_or_else(|| {
        format!(
            "{} has a member that is neither the name of a rule (up to {RULE_LEN_MAX} letters, \
             digits, - _ .) nor an object with rule and message",
            verb.name()
        )
    })?;
    found.sort_unstable();
    Ok(found)
}

/// Why the machine stopped, without values of the input.
fn stopped(error: &str) -> String {
    let error = error.to_lowercase();
    if error.contains("instruction limit") {
        format!("it needs more than {STEPS_MAX} steps")
    } else if error.contains("time limit") {
        format!("it needs more than {} ms", TIME_MAX.as_millis())
    } else if error.contains("regex") {
        "a pattern cannot be used".to_owned()
    } else {
        "a function was given what it cannot use, or a rule has two values".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rule_sets_do_not_change() {
        let names: Vec<&str> = Verb::VARIANTS.iter().map(|verb| verb.name()).collect();
        assert_eq!(names, ["deny", "allow", "allow_foreign"]);
    }
}
