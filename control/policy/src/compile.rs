//! One compiled policy, and its evaluation.

use std::collections::BTreeSet;
use std::sync::Arc;

use control_authz::{Widening, widening};
use parking_lot::Mutex;
use proto_public::{Method, methods};
use regorus::Value;
use regorus::rvm::{Program, RegoVM};
use strum::VariantArray;

use crate::Invalid;
use crate::engine::{EntryPoints, TIME_MAX, engine, package, program, rules, timer};
use crate::judged_methods::JudgedMethods;
use crate::scan::{PlacedRule, read};
use crate::verb::{Fired, Verb, fired};
use crate::wants::Wants;

/// Maximum source length of one policy, bytes. A longer policy is refused.
pub const SOURCE_BYTES_MAX: usize = 64 * 1024;
/// Maximum instructions of one evaluation, some milliseconds. Beyond it the evaluation fails.
pub const STEPS_MAX: usize = 50_000;
/// Maximum idle virtual machines that a policy keeps for its next evaluations. More are dropped.
const MACHINES_MAX: usize = 16;
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
        let entry = self.program.get_entry_points().len() - 1;
        let value = self.run(entry, Value::Undefined);
        let judged = value.and_then(|value| JudgedMethods::of(&value));
        let judged =
            judged.map_err(|message| Invalid::whole(&self.name, format!("methods: {message}")))?;
        (self.methods, self.named) = (judged.all, judged.named);
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
