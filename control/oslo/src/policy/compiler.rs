//! Check strings to nodes: names of rules become indices, attributes places.

use std::collections::HashMap;

use super::check_node::{CheckNode, CheckNodeId};
use super::operand::ComparedValue;
use super::remark::CompileRemark;
use super::rule::{PolicyRule, RuleId};
use crate::expression::{CheckExpression, SimpleCheck};
use crate::fault::PolicyFault;
use crate::match_value::MatchValue;

/// Compiles rule after rule into one list of nodes.
pub(super) struct PolicyCompiler<'a> {
    by_name: &'a HashMap<String, RuleId>,
    nodes: Vec<CheckNode>,
    remarks: Vec<CompileRemark>,
    rules: usize,
}

impl<'a> PolicyCompiler<'a> {
    pub(super) fn new(by_name: &'a HashMap<String, RuleId>) -> Self {
        Self {
            by_name,
            nodes: Vec::new(),
            remarks: Vec::new(),
            rules: 0,
        }
    }

    /// Compiles the next rule.
    pub(super) fn rule(&mut self, mut rule: PolicyRule) -> Result<PolicyRule, PolicyFault> {
        let root = self.expression(&rule.check, &rule.name)?;
        rule.set_root(root);
        self.rules += 1;
        Ok(rule)
    }

    pub(super) fn finish(self) -> (Vec<CheckNode>, Vec<CompileRemark>) {
        (self.nodes, self.remarks)
    }

    /// A node comes before its parts, so that its place from the root is that in the check string.
    fn expression(
        &mut self,
        expression: &CheckExpression,
        rule: &str,
    ) -> Result<CheckNodeId, PolicyFault> {
        let id = CheckNodeId::of(self.nodes.len());
        self.nodes.push(CheckNode::Never);
        let node = match expression {
            CheckExpression::Always => CheckNode::Always,
            CheckExpression::Never => CheckNode::Never,
            CheckExpression::Check(check) => self.check(check, rule)?,
            CheckExpression::Not(inner) => CheckNode::Not(self.expression(inner, rule)?),
            CheckExpression::All(parts) => CheckNode::All(self.parts(parts, rule)?),
            CheckExpression::Any(parts) => CheckNode::Any(self.parts(parts, rule)?),
        };
        if let Some(place) = self.nodes.get_mut(id.place()) {
            *place = node;
        }
        Ok(id)
    }

    fn parts(
        &mut self,
        parts: &[CheckExpression],
        rule: &str,
    ) -> Result<Box<[CheckNodeId]>, PolicyFault> {
        parts
            .iter()
            .map(|part| self.expression(part, rule))
            .collect()
    }

    fn check(&mut self, check: &SimpleCheck, rule: &str) -> Result<CheckNode, PolicyFault> {
        match check.kind() {
            "rule" => Ok(self.reference(check.value())),
            "role" => Ok(CheckNode::Role(self.value(check, rule)?.folded())),
            kind => {
                let left = ComparedValue::of_kind(kind).map_err(|unknown| {
                    PolicyFault::of_rule(
                        rule,
                        format!("{check}: {}", unknown.problem),
                        unknown.remedy,
                    )
                })?;
                let right = self.value(check, rule)?;
                if left == ComparedValue::Nothing {
                    self.remarks.push(CompileRemark::NeverTrue {
                        rule: RuleId::of(self.rules),
                        check: check.to_string(),
                    });
                }
                Ok(CheckNode::Compare { left, right })
            }
        }
    }

    fn reference(&mut self, name: &str) -> CheckNode {
        if let Some(id) = self.by_name.get(name) {
            return CheckNode::Rule(*id);
        }
        self.remarks.push(CompileRemark::UnknownRule {
            rule: RuleId::of(self.rules),
            reference: name.to_owned(),
        });
        CheckNode::Never
    }

    fn value(&mut self, check: &SimpleCheck, rule: &str) -> Result<MatchValue, PolicyFault> {
        let owner = RuleId::of(self.rules);
        let remarks = &mut self.remarks;
        let resolved = MatchValue::resolve(check.value(), |attribute| {
            remarks.push(CompileRemark::UnknownAttribute {
                rule: owner,
                attribute: attribute.to_owned(),
            });
        });
        resolved.map_err(|part| {
            PolicyFault::of_rule(
                rule,
                format!("{check}: {part:?} is no place for an attribute"),
                "write %(ATTRIBUTE)s, such as %(node.owner)s; a percent sign is %%",
            )
        })
    }
}
