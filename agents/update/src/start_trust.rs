use crate::program::TrialProgram;

/// The agent's own files that decide about its program, as they are at a start: self-update, or a key, may
/// have been taken back since a release was installed.
///
/// The installed program asks them, which may be much older than the files: fields that it does not know do
/// not count.
pub trait StartTrust {
    /// The reason why a release on trial is not started. `None` if it may be. Files that cannot be read
    /// trust nobody: the program before it goes on, and nothing is lost.
    fn trial_problem(&self, trial: &TrialProgram) -> Option<String>;

    /// The reason why a release that has confirmed itself is not started any more. `head` is its signed
    /// head. `None` if it may be, and if the files do not say which keys are trusted: a mistake in a file, or
    /// self-update that is off, must not bring an old program back.
    fn confirmed_problem(&self, head: &[u8]) -> Option<String>;
}
