//! Compilation and evaluation of one policy.

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
use strum::VariantArray;

use crate::Invalid;
use crate::invalid::SourcePosition;
use crate::scan::{PlacedRule, is_listed, read, scan};
use crate::verb::{Fired, Verb};
use crate::wants::Wants;

/// Maximum source length of one policy, bytes. A longer policy is refused.
pub const SOURCE_BYTES_MAX: usize = 64 * 1024;
/// Maximum instructions of one evaluation, some milliseconds. Beyond it the evaluation fails.
pub const STEPS_MAX: usize = 50_000;
/// Maximum duration of one evaluation, for instructions that take long. Beyond it the evaluation
/// fails.
const TIME_MAX: Duration = Duration::from_millis(250);
/// Instructions between two checks of the clock.
const STEPS_BETWEEN_LOOKS: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);
/// Maximum idle virtual machines that a policy keeps for its next evaluations. More are dropped.
const MACHINES_MAX: usize = 16;
/// Maximum length of a rule's name in a decision, bytes. A longer name fails the evaluation.
const RULE_LEN_MAX: usize = 64;
/// Maximum length of a rule's message, characters. A longer message is cut.
const MESSAGE_LEN_MAX: usize = 512;

/// A policy that can be evaluated.
#[derive(Debug)]
pub struct Compiled {
    name: String,
    package: String,
    program: Arc<Program>,
    /// Entry points of the rule sets in the program.
    entries: EntryPoints,
    /// Indices of the methods that the policy judges.
    methods: BTreeSet<usize>,
    /// The subset of `methods` that the policy names in full.
    named: BTreeSet<usize>,
    tests: Vec<PlacedRule>,
    wants: Wants,
    /// Idle virtual machines, at most `MACHINES_MAX`.
    machines: Mutex<Vec<RegoVM>>,
}

impl Compiled {
    /// Parses and compiles a policy. [`check`](crate::check) also runs its tests.
    ///
    /// # Errors
    /// The first fault, with its position.
    pub fn new(name: &str, source: &str) -> Result<Self, Invalid> {
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!("it must have at most {SOURCE_BYTES_MAX} bytes");
            return Err(Invalid::whole(name, message));
        }
        let text = read(name, source)?;
        let mut engine = engine(name, source)?;
        let package = package(name, &mut engine)?;
        let rules = rules(name, &text, &mut engine)?;
        let missing = |name: &str| !rules.iter().any(|rule| rule.name == name);
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
        tests.retain(|rule| rule.name.starts_with("test_"));
        tests.dedup_by(|next, first| next.name == first.name);
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

    /// Name of the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Indices of the methods that it judges.
    pub fn methods(&self) -> &BTreeSet<usize> {
        &self.methods
    }

    /// Paths of the methods that it judges.
    pub fn paths(&self) -> BTreeSet<String> {
        let judged = self
            .methods
            .iter()
            .filter_map(|index| methods().get(*index));
        judged.map(|method| method.path.clone()).collect()
    }

    /// Names of its own tests.
    pub fn tests(&self) -> impl Iterator<Item = &str> {
        self.tests.iter().map(|test| test.name.as_str())
    }

    /// Its own tests, with their positions.
    pub(crate) fn placed_tests(&self) -> &[PlacedRule] {
        &self.tests
    }

    /// The parts of the input that it reads.
    pub(crate) fn wants(&self) -> &Wants {
        &self.wants
    }

    /// The package, with `data.` in front.
    pub(crate) fn package(&self) -> &str {
        &self.package
    }

    /// `true` if the policy defines this set.
    pub(crate) fn has(&self, verb: Verb) -> bool {
        self.entries[verb as usize].is_some()
    }

    /// `true` if this set may decide calls of the method. A set that permits may open only methods
    /// whose widening allows it.
    pub(crate) fn may_open(&self, method: &Method, verb: Verb) -> bool {
        let is_named = self.named.contains(&method.index);
        match (verb, widening(method)) {
            (Verb::Deny, _) => true,
            (_, Widening::Never) => false,
            (Verb::AllowForeign, _) | (Verb::Allow, Widening::Named) => is_named,
            (Verb::Allow, Widening::Any) => true,
        }
    }

    /// The rules of a set that fire for an input, ordered by name.
    ///
    /// # Errors
    /// The reason why the policy cannot be evaluated, without values of the input.
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
            // A machine that stopped midway keeps the state of the broken evaluation, so it is
            // dropped instead of being reused.
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

    /// Evaluates `methods` once, without an input.
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
            .filter(|texts| !texts.is_empty())
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
            if found.iter().all(|method| !is_judged(method)) {
                return Err(whole(format!("{wanted:?} is never judged by a policy")));
            }
            let found = found.into_iter().filter(|method| is_judged(method));
            let found: Vec<usize> = found.map(|method| method.index).collect();
            if !wanted.ends_with('*') {
                named.extend(&found);
            }
            all.extend(found);
        }
        (self.methods, self.named) = (all, named);
        Ok(())
    }

    /// Refuses a permitting set that can open none of the policy's methods: its author expects an
    /// effect that it cannot have.
    fn check_widening(&self) -> Result<(), Invalid> {
        for verb in [Verb::Allow, Verb::AllowForeign] {
            let mut judged = self
                .methods
                .iter()
                .filter_map(|index| methods().get(*index));
            if !self.has(verb) || judged.any(|method| self.may_open(method, verb)) {
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
fn package(name: &str, engine: &mut Engine) -> Result<String, Invalid> {
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
fn rules(name: &str, text: &Source, engine: &mut Engine) -> Result<Vec<PlacedRule>, Invalid> {
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
type EntryPoints = [Option<usize>; 3];

/// The bytecode, with the defined sets as entry points and `methods` as the last one.
fn program(
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

/// The methods that a member of `methods` matches: a full path, or a prefix and `*`.
fn matching(wanted: &str) -> Vec<&'static Method> {
    let wanted = wanted.trim_start_matches('/');
    let path = |method: &'static Method| method.path.trim_start_matches('/');
    match wanted.strip_suffix('*') {
        Some(begin) => {
            let all = methods().iter();
            all.filter(|method| path(method).starts_with(begin))
                .collect()
        }
        None => methods()
            .iter()
            .filter(|method| path(method) == wanted)
            .collect(),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_string().ok().map(|text| text.to_string())
}

/// The rules of a set that fired, from the set's value.
///
/// # Errors
/// The value is not a set of rules.
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
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fits = (1..=RULE_LEN_MAX).contains(&rule.len()) && rule.bytes().all(is_allowed);
        // Control characters would let a message forge lines of logs and terminals.
        let message = message.chars().filter(|letter| !letter.is_control());
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

/// The reason why the machine stopped, without values of the input.
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
