//! The trial of a policy before it is put in force: its own tests, and sample calls of every kind of
//! caller, evaluated by two engines that must agree.

use proto_public::methods;
use regorus::{Engine, Value};
use strum::VariantArray as _;

use crate::compile::Compiled;
use crate::engine::engine;
use crate::input::document;
use crate::samples::SampleCall;
use crate::verb::{Fired, Verb, fired};
use crate::wants::Wants;
use crate::{Invalid, MOMENTS, callers};

/// Maximum sample calls of one trial. Of more, an even selection is tried.
const CALLS_MAX: usize = 1000;

/// A policy that passed its trial.
#[derive(Debug)]
pub struct Checked {
    /// The compiled policy.
    pub compiled: Compiled,
    /// Number of sample calls that it was tried on.
    pub calls: usize,
}

/// Compiles a policy, runs its tests, and evaluates it for sample calls.
///
/// # Errors
/// The first fault, with its position.
pub fn check(name: &str, source: &str) -> Result<Checked, Invalid> {
    let compiled = Compiled::new(name, source)?;
    let mut interpreter = engine(name, source)?;
    run_tests(&compiled, &mut interpreter)?;
    let calls = try_calls(&compiled, &mut interpreter)?;
    Ok(Checked { compiled, calls })
}

/// Runs the rules named `test_...`; each must be true.
fn run_tests(compiled: &Compiled, interpreter: &mut Engine) -> Result<(), Invalid> {
    for test in compiled.placed_tests() {
        let path = format!("{}.{}", compiled.package(), test.name);
        let result = interpreter.eval_rule(path);
        let wrong = match result {
            Ok(Value::Bool(true)) => continue,
            Ok(_) => "it is not true".to_owned(),
            Err(error) => Invalid::of_engine("", &error.to_string()).message,
        };
        let message = format!("{} fails: {wrong}", test.name);
        return Err(Invalid::at(compiled.name(), test.at, message));
    }
    Ok(())
}

fn try_calls(compiled: &Compiled, interpreter: &mut Engine) -> Result<usize, Invalid> {
    let callers = callers();
    let all = compiled
        .methods()
        .iter()
        .filter_map(|index| methods().get(*index));
    let all = all.flat_map(|method| {
        callers.iter().flat_map(move |sample| {
            MOMENTS.map(|(_, moment)| SampleCall::new(method, sample, moment, None))
        })
    });
    let count = compiled.methods().len() * callers.len() * MOMENTS.len();
    let mut tried = 0;
    // A fixed step through all calls instead of the first ones, so that every method and every kind
    // of caller is represented.
    for call in all.step_by(count.div_ceil(CALLS_MAX).max(1)) {
        // The interpreter gets the whole input, the bytecode only the parts that the policy names. If
        // `Wants` missed a part that the policy reads, the two would differ here.
        let whole = document(&call.facts(), &Wants::ALL);
        let input = document(&call.facts(), compiled.wants());
        for verb in Verb::VARIANTS
            .iter()
            .copied()
            .filter(|verb| compiled.has(*verb))
        {
            let wrong = |what: &str| {
                let (verb, caller) = (verb.name(), call.sample.title);
                let message = format!("{verb} {what} ({}, {caller})", call.method.path);
                Invalid::whole(compiled.name(), message)
            };
            let by_code = compiled.fired(verb, &input);
            let by_code = by_code.map_err(|why| wrong(&format!("cannot be evaluated: {why}")))?;
            let by_tree = interpreted(compiled, interpreter, verb, &whole);
            let by_tree = by_tree.map_err(|why| wrong(&format!("cannot be evaluated: {why}")))?;
            if by_code != by_tree {
                return Err(wrong("means two things to two engines: write it otherwise"));
            }
        }
        tried += 1;
    }
    Ok(tried)
}

fn interpreted(
    compiled: &Compiled,
    interpreter: &mut Engine,
    verb: Verb,
    input: &Value,
) -> Result<Vec<Fired>, String> {
    interpreter.set_input(input.clone());
    let path = format!("{}.{}", compiled.package(), verb.name());
    let value = interpreter.eval_rule(path);
    let value = value.map_err(|error| Invalid::of_engine("", &error.to_string()).message)?;
    fired(verb, &value)
}
