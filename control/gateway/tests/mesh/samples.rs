//! A request for each method of the mesh that names the objects of partition p1.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use Expected::{OwnOnly, Refused};
use prost::Message;
use proto_identity::Key;
use proto_link::{MeshClient, MethodSpec};
use proto_mesh::*;
use proto_types::{OrderId, ProjectId};
use tokio::time::timeout;
use uuid::Uuid;

use crate::fixture::*;
use crate::matrix::{A, MAC_A};

/// A sample and the path of its method.
type NamedSample = (&'static str, Sample);
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Vec<u8>, LinkStatus>> + Send>>;

/// The answer to a caller of the right kind that names another's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A refusal.
    Refused,
    /// An answer about the caller's own objects.
    OwnOnly,
}

/// One method with a request that names the objects of p1 wherever a request can name any.
pub(crate) struct Sample {
    pub(crate) expected: Expected,
    pub(crate) call: Box<dyn Fn(&MeshClient) -> Answer + Send + Sync>,
}

fn unary<Req, Resp>(spec: &'static MethodSpec, expected: Expected, request: Req) -> NamedSample
where
    Req: Message + Clone + 'static,
    Resp: Message + Default + 'static,
{
    let call = move |mesh: &MeshClient| -> Answer {
        let (mesh, request) = (mesh.clone(), request.clone());
        Box::pin(async move {
            let answer: Resp = mesh.unary(spec, &request).await?;
            Ok(answer.encode_to_vec())
        })
    };
    let call = Box::new(call);
    (spec.path, Sample { expected, call })
}

fn stream<Req, Resp>(spec: &'static MethodSpec, expected: Expected, request: Req) -> NamedSample
where
    Req: Message + Clone + 'static,
    Resp: Message + Default + 'static,
{
    let call = move |mesh: &MeshClient| -> Answer {
        let (mesh, request) = (mesh.clone(), request.clone());
        Box::pin(async move {
            let mut stream = mesh.server_streaming::<_, Resp>(spec, &request).await?;
            let first = timeout(PATIENCE, stream.message()).await;
            let first = first.expect("a first message or an end")?;
            Ok(first
                .map(|message| message.encode_to_vec())
                .unwrap_or_default())
        })
    };
    let call = Box::new(call);
    (spec.path, Sample { expected, call })
}

/// The objects of p1 that requests can name.
pub(crate) struct Victim {
    pub(crate) project: ProjectId,
    pub(crate) allocation: String,
    pub(crate) order: OrderId,
}

/// A sample of each method, by its path.
pub(crate) fn samples(victim: &Victim) -> BTreeMap<&'static str, Sample> {
    let mut samples = BTreeMap::new();
    samples.extend(of_identities());
    samples.extend(of_switches());
    samples.extend(of_bmcs(victim));
    samples.extend(of_boots());
    samples.extend(of_machines(victim));
    samples.extend(of_programs());
    samples
}

fn csr() -> Vec<u8> {
    Key::generate().unwrap().request().unwrap()
}

fn of_identities() -> Vec<NamedSample> {
    let join = JoinRequest {
        ticket_id: Uuid::now_v7().to_string(),
        secret: vec![1; 32],
        csr: csr(),
        machine_uuid: A.into(),
        mac: MAC_A.into(),
        ..Default::default()
    };
    vec![
        unary::<_, Certificate>(&enrol_service::JOIN, Refused, join),
        unary::<_, TpmChallenge>(
            &enrol_service::CHALLENGE_TPM,
            Refused,
            TpmChallengeRequest::default(),
        ),
        unary::<_, Certificate>(&enrol_service::RESUME, Refused, ResumeRequest::default()),
        unary::<_, Certificate>(
            &identity_service::RENEW,
            OwnOnly,
            RenewRequest { csr: csr() },
        ),
        unary::<_, JoinClusterResponse>(
            &node_service::JOIN_CLUSTER,
            Refused,
            JoinClusterRequest::default(),
        ),
    ]
}

fn of_switches() -> Vec<NamedSample> {
    let port = PortState {
        name: "swp1".into(),
        vni: 66,
        ..Default::default()
    };
    let report = SwitchReport {
        applied_term: u64::MAX,
        ports: vec![port],
        ..Default::default()
    };
    vec![
        unary::<_, SwitchRegisterResponse>(
            &switch_service::REGISTER,
            Refused,
            SwitchRegisterRequest::default(),
        ),
        stream::<_, SwitchDesired>(
            &switch_service::DESIRED,
            Refused,
            SwitchDesiredRequest::default(),
        ),
        unary::<_, SwitchReportResponse>(&switch_service::REPORT, Refused, report),
    ]
}

fn of_bmcs(victim: &Victim) -> Vec<NamedSample> {
    let reading = BmcStatus {
        machine_uuid: A.into(),
        address: "10.0.0.66:623".into(),
        power_state: "off".into(),
        ..Default::default()
    };
    let report = BmcReport {
        bmcs: vec![reading],
    };
    let done = BmcOrderDone {
        id: victim.order.to_string(),
        ..Default::default()
    };
    vec![
        stream::<_, BmcDesired>(&bmc_service::DESIRED, OwnOnly, BmcDesiredRequest {}),
        unary::<_, BmcReportResponse>(&bmc_service::REPORT, OwnOnly, report),
        unary::<_, BmcOrderDoneResponse>(&bmc_service::ORDER_DONE, Refused, done),
    ]
}

fn of_boots() -> Vec<NamedSample> {
    let ticket = BootTicketRequest {
        machine_uuid: A.into(),
        mac: MAC_A.into(),
    };
    let lease = BmcLease {
        mac: MAC_A.into(),
        address: "10.0.0.66".into(),
        remaining_ms: 0,
    };
    let report = LeaseReport {
        leases: vec![lease],
    };
    vec![
        stream::<_, BootDesired>(&boot_service::DESIRED, OwnOnly, BootDesiredRequest {}),
        unary::<_, BootSeenResponse>(&boot_service::SEEN, Refused, seen_at_boot(A, MAC_A)),
        unary::<_, BootTicket>(&boot_service::ISSUE_TICKET, Refused, ticket),
        unary::<_, LeaseReportResponse>(&boot_service::REPORT_LEASES, OwnOnly, report),
    ]
}

fn of_programs() -> Vec<NamedSample> {
    let report = UpdateReport {
        version: "1.2.0".into(),
        phase: "off".into(),
        ..Default::default()
    };
    vec![
        stream::<_, UpdateDesired>(&update_service::DESIRED, OwnOnly, UpdateDesiredRequest {}),
        unary::<_, UpdateReportResponse>(&update_service::REPORT, OwnOnly, report),
    ]
}

fn of_machines(victim: &Victim) -> Vec<NamedSample> {
    let register = MachineRegisterRequest {
        boot_id: "b".into(),
        ..Default::default()
    };
    let event = MachineEvent {
        event: "Crashed".into(),
        ..Default::default()
    };
    let install = InstallReport {
        allocation_uuid: victim.allocation.clone(),
        ..Default::default()
    };
    vec![
        unary::<_, MachineRegisterResponse>(&machine_service::REGISTER, OwnOnly, register),
        stream::<_, MachineOrder>(
            &machine_service::ORDERS,
            OwnOnly,
            MachineOrdersRequest::default(),
        ),
        unary::<_, MachineEventResponse>(&machine_service::EVENT, OwnOnly, event),
        unary::<_, WipeReportResponse>(&machine_service::WIPE_DONE, OwnOnly, WipeReport::default()),
        unary::<_, ProjectIdentityResponse>(
            &machine_service::PROJECT_IDENTITY,
            Refused,
            ProjectIdentityRequest { csr: csr() },
        ),
        unary::<_, InstallReportResponse>(&machine_service::INSTALL_DONE, Refused, install),
        unary::<_, PhoneHomeResponse>(
            &phone_home_service::PHONE_HOME,
            Refused,
            PhoneHomeRequest::default(),
        ),
        stream::<_, FirewallDesired>(
            &firewall_service::DESIRED,
            Refused,
            FirewallDesiredRequest::default(),
        ),
        unary::<_, FirewallReportResponse>(
            &firewall_service::REPORT,
            Refused,
            FirewallReport::default(),
        ),
        unary::<_, FirewallStatisticsResponse>(
            &firewall_service::REPORT_STATISTICS,
            Refused,
            FirewallStatistics::default(),
        ),
        stream::<_, FirewallCandidate>(
            &firewall_service::CANDIDATES,
            Refused,
            FirewallCandidatesRequest::default(),
        ),
        unary::<_, FirewallCandidateReportResponse>(
            &firewall_service::REPORT_CANDIDATE,
            Refused,
            FirewallCandidateReport::default(),
        ),
    ]
}
