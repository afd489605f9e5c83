use std::future::Future;
use std::time::Duration;

use thiserror::Error;

use crate::capability::Capability;
use crate::frr::announced::AnnouncedPrefix;
use crate::frr::{FrrError, RoutingError};
use crate::interpret::StepError;
use crate::linux::NftError;
use crate::lldp;
use crate::model::PortName;
use crate::observation::Observation;
use crate::sonic::SonicError;
use crate::step::Step;
use crate::telemetry::Telemetry;

/// A failure of a back-end to observe or change the switch.
#[derive(Debug, Error)]
pub enum NosError {
    /// The interface does not exist.
    #[error("no interface {0}")]
    NoInterface(String),
    /// A device with a name of ours is of another kind.
    #[error("{0} exists and is not ours")]
    NotOurs(String),
    /// The switch did not answer within a time limit.
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    /// The back-end lacks the capability for a step.
    #[error("this switch needs {0} for the step")]
    Unsupported(Capability),
    /// The switch is in another state than the step expects.
    #[error("the step does not fit the switch")]
    Step(#[from] StepError),
    /// The kernel refused an action.
    #[error("{action}")]
    Netlink {
        /// The action.
        action: String,
        /// The kernel's error.
        #[source]
        source: Box<rtnetlink::Error>,
    },
    /// The netlink socket cannot be opened.
    #[error("cannot open the netlink socket")]
    Open(#[source] std::io::Error),
    /// The kernel refused a setting.
    #[error("cannot set {path}")]
    Setting {
        /// The setting's file.
        path: std::path::PathBuf,
        /// The kernel's error.
        #[source]
        source: std::io::Error,
    },
    /// FRR cannot be observed or changed.
    #[error("FRR")]
    Frr(#[from] FrrError),
    /// nftables cannot be changed.
    #[error("packet filter")]
    PacketFilter(#[from] NftError),
    /// FRR cannot have a part of the switch's state.
    #[error("FRR cannot have this state")]
    Routing(#[from] RoutingError),
    /// A machine's port waits for EVPN, which tells the leaf who is where. The step succeeds when a
    /// session to a spine has been up for this time.
    #[error("the port comes up when EVPN to a spine has been up for {0:?}")]
    NoFabric(Duration),
    /// SONiC's databases cannot be read or changed.
    #[error("SONiC")]
    Sonic(#[from] SonicError),
    /// A fault that a test has requested of the stub.
    #[error("fault injected: {0}")]
    Injected(String),
}

/// The operating system of a switch (network operating system), of one kind.
pub trait Nos: Send + Sync {
    /// Vendor for the registration: "linux", "sonic".
    fn vendor(&self) -> &'static str;

    /// Version of the operating system. Empty if unknown.
    fn version(&self) -> String;

    /// The capabilities beyond ports and segments. [`crate::plan`] makes no step that needs another
    /// one.
    fn capabilities(&self) -> &'static [Capability];

    /// Observes the current state of the switch.
    fn observe(&self) -> impl Future<Output = Result<Observation, NosError>> + Send;

    /// Observes the switch after steps of this back-end, to verify them.
    ///
    /// A part that the back-end has read since it changed it last need not be read again: what
    /// somebody else changes meanwhile is seen by the next [`Self::observe`].
    fn observe_applied(&self) -> impl Future<Output = Result<Observation, NosError>> + Send {
        self.observe()
    }

    /// Applies one step, with the meaning of [`crate::interpret`]. Idempotent: no error if the
    /// step is done already.
    ///
    /// A step that is cut by a time limit has had its effect when the future is dropped, or never
    /// has it: a port that enters its place later could meet the next tenant there.
    fn apply(&self, step: &Step) -> impl Future<Output = Result<(), NosError>> + Send;

    /// Applies steps in their order, until one fails. A back-end may do steps in a row at once
    /// where their order does not matter.
    fn apply_all(&self, steps: &[Step]) -> impl Future<Output = Result<(), NosError>> + Send {
        async move {
            for step in steps {
                self.apply(step).await?;
            }
            Ok(())
        }
    }

    /// Returns after a change that this back-end may not have made itself.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Sessions, counters and optics, which no plan depends on. Empty where the operating system
    /// tells nothing of the kind.
    fn telemetry(&self) -> impl Future<Output = Result<Telemetry, NosError>> + Send {
        std::future::ready(Ok(Telemetry::default()))
    }

    /// IP prefixes that the neighbour on a port of the underlay announces by EVPN, as far as its
    /// import permits them. Empty where the operating system tells nothing of the kind.
    fn announced(
        &self,
        _port: &PortName,
    ) -> impl Future<Output = Result<Vec<AnnouncedPrefix>, NosError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// LLDP neighbours by port, if the operating system speaks LLDP itself. `None` means that the
    /// agent has to.
    fn neighbours(&self) -> Option<lldp::Neighbours> {
        None
    }
}
