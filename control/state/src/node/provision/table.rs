//! The provision machine of Ironic as one table.

use super::ProvisionEvent as Event;
use crate::node::entity::ProvisionState as State;

/// An edge: a state, the event that counts in it, and the state that follows.
type ProvisionEdge = (State, Event, State);

/// Every edge, by state in the order of a node's life.
pub(super) static EDGES: [ProvisionEdge; 93] = [
    (State::Enroll, Event::Manage, State::Verifying),
    (State::Verifying, Event::Done, State::Manageable),
    (State::Verifying, Event::Fail, State::Enroll),
    (State::Manageable, Event::Provide, State::Cleaning),
    (State::Manageable, Event::Clean, State::Cleaning),
    (State::Manageable, Event::Inspect, State::Inspecting),
    (State::Manageable, Event::Adopt, State::Adopting),
    (State::Available, Event::Deploy, State::Deploying),
    (State::Available, Event::Manage, State::Manageable),
    (State::Active, Event::Rebuild, State::Deploying),
    (State::Active, Event::Delete, State::Deleting),
    (State::Active, Event::Rescue, State::Rescuing),
    (State::Active, Event::Service, State::Servicing),
    (State::Error, Event::Rebuild, State::Deploying),
    (State::Error, Event::Delete, State::Deleting),
    (State::Rescue, Event::Rescue, State::Rescuing),
    (State::Rescue, Event::Delete, State::Deleting),
    (State::Rescue, Event::Unrescue, State::Unrescuing),
    (State::Deploying, Event::Fail, State::DeployFailed),
    (State::Deploying, Event::Wait, State::DeployWait),
    (State::Deploying, Event::Hold, State::DeployHold),
    (State::Deploying, Event::Done, State::Active),
    (State::DeployWait, Event::Hold, State::DeployHold),
    (State::DeployWait, Event::Resume, State::Deploying),
    (State::DeployWait, Event::Fail, State::DeployFailed),
    (State::DeployWait, Event::Abort, State::DeployFailed),
    (State::DeployWait, Event::Delete, State::Deleting),
    (State::DeployFailed, Event::Rebuild, State::Deploying),
    (State::DeployFailed, Event::Deploy, State::Deploying),
    (State::DeployFailed, Event::Delete, State::Deleting),
    (State::DeployHold, Event::Unhold, State::DeployWait),
    (State::DeployHold, Event::Abort, State::DeployFailed),
    (State::Deleting, Event::Fail, State::Error),
    (State::Deleting, Event::Clean, State::Cleaning),
    (State::Cleaning, Event::Done, State::Available),
    (State::Cleaning, Event::Fail, State::CleanFailed),
    (State::Cleaning, Event::Wait, State::CleanWait),
    (State::Cleaning, Event::Hold, State::CleanHold),
    (State::Cleaning, Event::Manage, State::Manageable),
    (State::CleanWait, Event::Fail, State::CleanFailed),
    (State::CleanWait, Event::Abort, State::CleanFailed),
    (State::CleanWait, Event::Hold, State::CleanHold),
    (State::CleanWait, Event::Resume, State::Cleaning),
    (State::CleanFailed, Event::Manage, State::Manageable),
    (State::CleanHold, Event::Abort, State::CleanFailed),
    (State::CleanHold, Event::Unhold, State::CleanWait),
    (State::Inspecting, Event::Done, State::Manageable),
    (State::Inspecting, Event::Fail, State::InspectFailed),
    (State::Inspecting, Event::Wait, State::InspectWait),
    (State::InspectWait, Event::Done, State::Manageable),
    (State::InspectWait, Event::Fail, State::InspectFailed),
    (State::InspectWait, Event::Abort, State::InspectFailed),
    (State::InspectWait, Event::Resume, State::Inspecting),
    (State::InspectFailed, Event::Manage, State::Manageable),
    (State::InspectFailed, Event::Inspect, State::Inspecting),
    (State::Adopting, Event::Done, State::Active),
    (State::Adopting, Event::Fail, State::AdoptFailed),
    (State::AdoptFailed, Event::Adopt, State::Adopting),
    (State::AdoptFailed, Event::Manage, State::Manageable),
    (State::Rescuing, Event::Done, State::Rescue),
    (State::Rescuing, Event::Wait, State::RescueWait),
    (State::Rescuing, Event::Fail, State::RescueFailed),
    (State::RescueWait, Event::Resume, State::Rescuing),
    (State::RescueWait, Event::Fail, State::RescueFailed),
    (State::RescueWait, Event::Abort, State::RescueFailed),
    (State::RescueWait, Event::Delete, State::Deleting),
    (State::RescueFailed, Event::Rescue, State::Rescuing),
    (State::RescueFailed, Event::Unrescue, State::Unrescuing),
    (State::RescueFailed, Event::Delete, State::Deleting),
    (State::Unrescuing, Event::Done, State::Active),
    (State::Unrescuing, Event::Fail, State::UnrescueFailed),
    (State::UnrescueFailed, Event::Rescue, State::Rescuing),
    (State::UnrescueFailed, Event::Unrescue, State::Unrescuing),
    (State::UnrescueFailed, Event::Delete, State::Deleting),
    (State::Servicing, Event::Done, State::Active),
    (State::Servicing, Event::Fail, State::ServiceFailed),
    (State::Servicing, Event::Wait, State::ServiceWait),
    (State::Servicing, Event::Hold, State::ServiceHold),
    (State::ServiceWait, Event::Hold, State::ServiceHold),
    (State::ServiceWait, Event::Resume, State::Servicing),
    (State::ServiceWait, Event::Fail, State::ServiceFailed),
    (State::ServiceWait, Event::Abort, State::ServiceFailed),
    (State::ServiceWait, Event::Delete, State::Deleting),
    (State::ServiceFailed, Event::Service, State::Servicing),
    (State::ServiceFailed, Event::Rescue, State::Rescuing),
    (State::ServiceFailed, Event::Wait, State::ServiceWait),
    (State::ServiceFailed, Event::Hold, State::ServiceHold),
    (State::ServiceFailed, Event::Delete, State::Deleting),
    (State::ServiceFailed, Event::Abort, State::Active),
    (State::ServiceHold, Event::Service, State::Servicing),
    (State::ServiceHold, Event::Unhold, State::ServiceWait),
    (State::ServiceHold, Event::Fail, State::ServiceFailed),
    (State::ServiceHold, Event::Abort, State::ServiceFailed),
];

impl State {
    /// The state that follows an event. `None` means that the event does not count in this state.
    pub fn next(self, event: Event) -> Option<Self> {
        let edge = EDGES
            .iter()
            .find(|(from, by, _)| (*from, *by) == (self, event));
        edge.map(|(_, _, to)| *to)
    }

    /// The state that a node in this one is on its way to. `None` means that it stays until a client
    /// asks for another one.
    pub const fn target(self) -> Option<Self> {
        match self {
            Self::Enroll
            | Self::Manageable
            | Self::Available
            | Self::Active
            | Self::Error
            | Self::Rescue => None,
            Self::Verifying | Self::Inspecting | Self::InspectWait | Self::InspectFailed => {
                Some(Self::Manageable)
            }
            Self::Cleaning
            | Self::CleanWait
            | Self::CleanFailed
            | Self::CleanHold
            | Self::Deleting => Some(Self::Available),
            Self::Rescuing | Self::RescueWait | Self::RescueFailed => Some(Self::Rescue),
            Self::Deploying
            | Self::DeployWait
            | Self::DeployFailed
            | Self::DeployHold
            | Self::Adopting
            | Self::AdoptFailed
            | Self::Unrescuing
            | Self::UnrescueFailed
            | Self::Servicing
            | Self::ServiceWait
            | Self::ServiceFailed
            | Self::ServiceHold => Some(Self::Active),
        }
    }

    /// `true` if a node stays in the state until a client asks for another one.
    pub const fn is_stable(self) -> bool {
        self.target().is_none()
    }

    /// `true` if a step is in progress, during which Ironic locks the node: a verb that does not count
    /// then may count a moment later.
    pub const fn is_working(self) -> bool {
        matches!(
            self,
            Self::Verifying
                | Self::Deploying
                | Self::Deleting
                | Self::Cleaning
                | Self::Inspecting
                | Self::Adopting
                | Self::Rescuing
                | Self::Unrescuing
                | Self::Servicing
        )
    }
}
