use std::path::PathBuf;

/// A reason why a kubeconfig cannot be used. No text of it quotes a value of the file.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file is no regular file, or others may write it.
    #[error("{} {problem}", path.display())]
    Unsafe {
        /// Path of the file.
        path: PathBuf,
        /// The problem, with its remedy.
        problem: &'static str,
    },
    /// The file is too large.
    #[error("the kubeconfig is larger than {bytes_max} bytes; leave one context in it")]
    TooLarge {
        /// Largest size, bytes.
        bytes_max: usize,
    },
    /// The file has so many brackets and braces that reading it could take long.
    #[error(
        "the kubeconfig has more than {brackets_max} brackets and braces, or a line of many dashes; \
         write it as kubectl does"
    )]
    Nested {
        /// Most opening brackets and braces.
        brackets_max: usize,
    },
    /// The file is no YAML.
    #[error("line {line}: the kubeconfig is no valid YAML; write it as kubectl does")]
    Syntax {
        /// Line, from 1; 0 if it is not known.
        line: usize,
    },
    /// A field is wrong.
    #[error("{field}: {problem}; {remedy}")]
    Field {
        /// Path of the field: `users[0].user.exec`.
        field: String,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}
