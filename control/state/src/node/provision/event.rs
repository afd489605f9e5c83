//! Events of the provision machine.

use strum::IntoStaticStr;

/// An event of the provision machine: a verb of a client, or a report of the machine's way. The names
/// are Ironic's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[strum(serialize_all = "lowercase")]
pub enum ProvisionEvent {
    /// A client takes the node under management, or off the offer.
    Manage,
    /// A client puts the node on offer.
    Provide,
    /// A client has the hardware read.
    Inspect,
    /// A client declares a running system to be deployed.
    Adopt,
    /// A client has steps of cleaning done.
    Clean,
    /// A client has an image installed.
    Deploy,
    /// A client has an image installed over the last one.
    Rebuild,
    /// A client gives the node back.
    Delete,
    /// A client has a rescue system booted.
    Rescue,
    /// A client has the rescue system left.
    Unrescue,
    /// A client has steps done while the system stays.
    Service,
    /// A client ends a step before its end.
    Abort,
    /// A client ends a hold.
    Unhold,
    /// A step asked for a hold.
    Hold,
    /// A step waits for the machine.
    Wait,
    /// The machine called.
    Resume,
    /// The last step ended.
    Done,
    /// A step failed.
    Fail,
}

impl ProvisionEvent {
    /// The event that a client asks for by this target of a request. `None` means that it is no verb.
    pub fn of_verb(target: &str) -> Option<Self> {
        let event = match target {
            "active" | "deploy" => Self::Deploy,
            "rebuild" => Self::Rebuild,
            "deleted" | "undeploy" => Self::Delete,
            "manage" => Self::Manage,
            "provide" => Self::Provide,
            "inspect" => Self::Inspect,
            "adopt" => Self::Adopt,
            "clean" => Self::Clean,
            "rescue" => Self::Rescue,
            "unrescue" => Self::Unrescue,
            "service" => Self::Service,
            "abort" => Self::Abort,
            "unhold" => Self::Unhold,
            _ => return None,
        };
        Some(event)
    }

    /// Name in the machine.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
