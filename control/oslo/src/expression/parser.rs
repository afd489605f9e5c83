//! The grammar of check strings: `not` binds stronger than `and`, and `and` stronger than `or`.

use super::token::{CheckToken, PlacedToken, tokens};
use super::{CheckExpression, CheckFault, SimpleCheck};

/// Checks that one check string may have. The defaults of Ironic have fewer than 20.
pub const CHECKS_MAX: usize = 512;
/// Parentheses and `not` that may be open at once in a check string.
pub const DEPTH_MAX: usize = 32;

/// Reads a check string. The empty one permits everybody.
pub(super) fn parse(text: &str) -> Result<CheckExpression, CheckFault> {
    if text.is_empty() {
        return Ok(CheckExpression::Always);
    }
    let mut parser = CheckParser {
        tokens: tokens(text)?,
        next: 0,
        checks: 0,
        depth: 0,
        end: text.chars().count() + 1,
    };
    if parser.tokens.is_empty() {
        return Err(CheckFault::whole(
            "it is blank, which permits nobody in oslo.policy",
            "write ! for nobody; @, or the empty text, for everybody",
        ));
    }
    let parsed = parser.any()?;
    match parser.peek() {
        None => Ok(parsed),
        Some(CheckToken::Close) => Err(CheckFault::at(
            parser.place(),
            "the parenthesis closes nothing",
            "remove it, or open one before",
        )),
        Some(_) => Err(CheckFault::at(
            parser.place(),
            "two checks without an operator between them",
            "write and, or or between them",
        )),
    }
}

struct CheckParser<'a> {
    tokens: Vec<PlacedToken<'a>>,
    /// Place of the next token.
    next: usize,
    /// Checks so far.
    checks: usize,
    /// Parentheses and `not` that are open.
    depth: usize,
    /// Character behind the last one.
    end: usize,
}

impl<'a> CheckParser<'a> {
    fn peek(&self) -> Option<CheckToken<'a>> {
        self.tokens.get(self.next).map(|placed| placed.token)
    }

    /// Character of the next token.
    fn place(&self) -> usize {
        let placed = self.tokens.get(self.next);
        placed.map_or(self.end, |placed| placed.at)
    }

    fn take(&mut self, wanted: CheckToken<'_>) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.next += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Result<CheckExpression, CheckFault> {
        let mut parts = vec![self.all()?];
        while self.take(CheckToken::Or) {
            parts.push(self.all()?);
        }
        Ok(joined(parts, CheckExpression::Any))
    }

    fn all(&mut self) -> Result<CheckExpression, CheckFault> {
        let mut parts = vec![self.inverted()?];
        while self.take(CheckToken::And) {
            parts.push(self.inverted()?);
        }
        Ok(joined(parts, CheckExpression::All))
    }

    fn inverted(&mut self) -> Result<CheckExpression, CheckFault> {
        if !self.take(CheckToken::Not) {
            return self.primary();
        }
        self.enter()?;
        let inner = self.inverted()?;
        self.depth -= 1;
        Ok(CheckExpression::Not(Box::new(inner)))
    }

    fn primary(&mut self) -> Result<CheckExpression, CheckFault> {
        let at = self.place();
        match self.peek() {
            Some(CheckToken::Open) => {
                self.next += 1;
                self.enter()?;
                let inner = self.any()?;
                if !self.take(CheckToken::Close) {
                    return Err(self.unclosed(at));
                }
                self.depth -= 1;
                Ok(inner)
            }
            Some(CheckToken::Word(word)) => {
                self.next += 1;
                self.word(word, at)
            }
            _ => Err(CheckFault::at(
                at,
                "a check is missing here",
                "write a check such as role:admin, @ or !",
            )),
        }
    }

    fn word(&mut self, word: &str, at: usize) -> Result<CheckExpression, CheckFault> {
        self.checks += 1;
        if self.checks > CHECKS_MAX {
            return Err(too_many_checks());
        }
        Ok(match word {
            "@" => CheckExpression::Always,
            "!" => CheckExpression::Never,
            _ => CheckExpression::Check(SimpleCheck::parse(word, at)?),
        })
    }

    fn enter(&mut self) -> Result<(), CheckFault> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        Err(CheckFault::whole(
            format!("it is nested deeper than {DEPTH_MAX} parentheses and not"),
            "split it into rules, and refer to them by rule:NAME",
        ))
    }

    fn unclosed(&self, opened_at: usize) -> CheckFault {
        match self.peek() {
            None => CheckFault::at(opened_at, "the parenthesis is never closed", "close it"),
            Some(_) => CheckFault::at(
                self.place(),
                "two checks without an operator between them",
                "write and, or or between them",
            ),
        }
    }
}

pub(super) fn too_many_checks() -> CheckFault {
    CheckFault::whole(
        format!("it has more than {CHECKS_MAX} checks"),
        "split it into rules, and refer to them by rule:NAME",
    )
}

/// The parts joined, or the only one.
pub(super) fn joined(
    mut parts: Vec<CheckExpression>,
    join: fn(Vec<CheckExpression>) -> CheckExpression,
) -> CheckExpression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}
