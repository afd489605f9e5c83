//! `Debug` of messages that carry secrets.

use std::fmt;

use crate::{
    BootTicket, Install, InstallReport, JoinClusterRequest, JoinRequest, TpmChallengeRequest,
};

const HIDDEN: &str = "<redacted>";

impl fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinRequest")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &HIDDEN)
            .field("machine_uuid", &self.machine_uuid)
            .field("mac", &self.mac)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TpmChallengeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TpmChallengeRequest")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &HIDDEN)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for JoinClusterRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinClusterRequest")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &HIDDEN)
            .field("peer_address", &self.peer_address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BootTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BootTicket")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &HIDDEN)
            .field("expires_ms", &self.expires_ms)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Install {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Install")
            .field("allocation_uuid", &self.allocation_uuid)
            .field("project", &self.project)
            .field("hostname", &self.hostname)
            .field("image", &self.image)
            .field("layout", &self.layout)
            .field("networks", &self.networks)
            .field("networking", &self.networking)
            .field("uplinks", &self.uplinks)
            .field("userdata", &HIDDEN)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for InstallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstallReport")
            .field("allocation_uuid", &self.allocation_uuid)
            .field("error", &self.error)
            .field("step", &self.step)
            .field("retryable", &self.retryable)
            .field("console_password", &HIDDEN)
            .field("primary_disk", &self.primary_disk)
            .finish_non_exhaustive()
    }
}
