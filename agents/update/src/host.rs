use crate::probe::ProbeJob;
use crate::settings::UpdateSettings;
use crate::wanted::WantedRelease;

/// The agent as self-update sees it at one moment.
pub trait UpdateHost {
    /// The settings. `None` if the configuration file is not valid: an earlier one does not decide about
    /// programs, because its keys may have been removed since.
    fn settings(&self) -> Option<UpdateSettings>;

    /// The reason why nothing is replaced although it is to be. `None` if there is none.
    fn obstacle(&self) -> Option<&'static str>;

    /// The release that the source names. `None` if it names none.
    ///
    /// # Errors
    /// The field, the problem and a remedy.
    fn wanted(&self) -> Result<Option<WantedRelease>, String>;

    /// `true` if the agent does its work, and its source answers. A new program is confirmed by that.
    fn is_healthy(&self) -> bool;

    /// The configuration that a new program must accept. `None` if there is no valid one.
    fn probe_job(&self) -> Option<ProbeJob>;

    /// Keeps what the program that runs has written, before another one writes it in its own way.
    ///
    /// # Errors
    /// It cannot be kept.
    fn keep_before_update(&self) -> Result<(), String>;

    /// Removes what was kept: the program that runs has proven itself.
    ///
    /// # Errors
    /// It cannot be removed.
    fn drop_before_update(&self) -> Result<(), String>;
}
