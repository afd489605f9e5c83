//! Compiled policies: the rules of a file over those that a service registers.

mod check_node;
mod compiler;
mod decide;
mod decision;
mod operand;
mod order;
mod remark;
mod rule;
mod sources;

use std::collections::HashMap;

use crate::fault::PolicyFault;
use crate::file::PolicyFile;
use crate::registered::RegisteredRule;
use check_node::{CheckNode, CheckNodeId};
use compiler::PolicyCompiler;

pub use decision::{DecidingCheck, PolicyDecision};
pub use order::DECISION_CHECKS_MAX;
pub(crate) use remark::CompileRemark;
pub use rule::{PolicyRule, RuleId, RuleOrigin};

/// A policy in its compiled form: names of rules are indices, names of attributes places.
#[derive(Debug)]
pub struct OsloPolicy {
    /// In ascending order of their roots.
    rules: Vec<PolicyRule>,
    /// The nodes of one rule after those of another, each before its parts.
    nodes: Vec<CheckNode>,
    by_name: HashMap<String, RuleId>,
    remarks: Vec<CompileRemark>,
}

impl OsloPolicy {
    /// Compiles the registered rules, with those of a file in their place or beside them.
    ///
    /// # Errors
    /// A check string has a kind of check that is not known or a malformed value, rules refer to
    /// each other in a circle, or a decision could visit too many checks.
    pub fn new(
        registered: &[&'static RegisteredRule],
        file: &PolicyFile,
    ) -> Result<Self, PolicyFault> {
        let rules = sources::rules(registered, file)?;
        let by_name: HashMap<String, RuleId> = rules
            .iter()
            .enumerate()
            .map(|(place, rule)| (rule.name.clone(), RuleId::of(place)))
            .collect();
        let mut compiler = PolicyCompiler::new(&by_name);
        let mut compiled = Vec::with_capacity(rules.len());
        for rule in rules {
            compiled.push(compiler.rule(rule)?);
        }
        let (nodes, remarks) = compiler.finish();
        let policy = Self {
            rules: compiled,
            nodes,
            by_name,
            remarks,
        };
        order::check(&policy)?;
        Ok(policy)
    }

    /// All rules, those of the file behind the registered ones.
    #[must_use]
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// The index of a rule, by which decisions need no look-up.
    #[must_use]
    pub fn rule_id(&self, name: &str) -> Option<RuleId> {
        self.by_name.get(name).copied()
    }

    /// A rule by its index.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Option<&PolicyRule> {
        self.rules.get(id.place())
    }

    /// Remarks of the compiler, for the lint.
    pub(crate) fn remarks(&self) -> &[CompileRemark] {
        &self.remarks
    }

    /// Rules that a rule refers to, each reference once.
    pub(crate) fn references(&self, id: RuleId) -> impl Iterator<Item = RuleId> {
        self.nodes_of(id).iter().filter_map(|node| match node {
            CheckNode::Rule(id) => Some(*id),
            _ => None,
        })
    }

    fn node(&self, id: CheckNodeId) -> Option<&CheckNode> {
        self.nodes.get(id.place())
    }

    /// The nodes of one rule.
    fn nodes_of(&self, id: RuleId) -> &[CheckNode] {
        let root = |place: usize| self.rules.get(place).map(|rule| rule.root().place());
        let end = root(id.place() + 1).unwrap_or(self.nodes.len());
        let begin = root(id.place()).unwrap_or(end);
        self.nodes.get(begin..end).unwrap_or_default()
    }

    /// The rule whose check string has a node.
    fn owner(&self, node: CheckNodeId) -> Option<RuleId> {
        let behind = self
            .rules
            .partition_point(|rule| rule.root().place() <= node.place());
        behind.checked_sub(1).map(RuleId::of)
    }
}
