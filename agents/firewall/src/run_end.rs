/// The reason why the agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It was stopped.
    Stopped,
    /// Another program takes its place: the service manager has to start it again.
    OtherProgram,
}
