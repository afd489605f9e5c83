use std::error::Error;
use std::fmt;

/// An error with all its causes, in one line, outermost first: `cannot start: port 67: in use`.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a>(pub &'a (dyn Error + 'a));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Outer {
        #[error("outer")]
        Inner(#[source] Inner),
        #[error("alone")]
        Alone,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner(#[source] std::fmt::Error);

    #[test]
    fn every_cause_is_named() {
        let error = Outer::Inner(Inner(std::fmt::Error));
        let text = format!("outer: inner: {}", std::fmt::Error);
        assert_eq!(Chain(&error).to_string(), text);
        assert_eq!(Chain(&Outer::Alone).to_string(), "alone");
    }
}
