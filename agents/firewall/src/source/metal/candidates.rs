//! Answers control about rules that somebody asks for, and applies none of them.

use std::time::Duration;

use base_runtime::Chain;
use proto_mesh::{
    FirewallCandidate, FirewallCandidateReport, FirewallCandidatesRequest, FirewallServiceClient,
    LinkStatus,
};
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::objects::objects;
use super::reports::{REFUSED_MAX, refusal};
use crate::candidate::RuleComparison;
use crate::source::CandidateSender;

/// Longest time for a comparison: less than control waits for it.
const COMPARE_MAX: Duration = Duration::from_secs(9);
/// Pause before the stream of questions is opened again. It ends with each session, and an older
/// control has none.
const REOPEN_PAUSE: Duration = Duration::from_secs(5);

/// Answers one question after the other, as long as it is polled.
pub(super) async fn answer_candidates(client: FirewallServiceClient, agent: CandidateSender) {
    loop {
        if let Err(error) = answer_stream(&client, &agent).await {
            debug!(%error, "control asks no questions about rules now");
        }
        sleep(REOPEN_PAUSE).await;
    }
}

async fn answer_stream(
    client: &FirewallServiceClient,
    agent: &CandidateSender,
) -> Result<(), LinkStatus> {
    let mut stream = client.candidates(FirewallCandidatesRequest {}).await?;
    while let Some(candidate) = stream.message().await? {
        let report = compare(candidate, agent).await;
        client.report_candidate(report).await?;
    }
    Ok(())
}

async fn compare(candidate: FirewallCandidate, agent: &CandidateSender) -> FirewallCandidateReport {
    let compared = match objects(&candidate.desired.unwrap_or_default()) {
        Ok(objects) => match timeout(COMPARE_MAX, agent.ask(objects)).await {
            Ok(compared) => compared,
            Err(_) => Err("the comparison took too long".to_owned()),
        },
        Err(error) => Err(Chain(&error).to_string()),
    };
    match compared {
        Ok(comparison) => report(candidate.id, &comparison),
        Err(error) => FirewallCandidateReport {
            id: candidate.id,
            error,
            ..FirewallCandidateReport::default()
        },
    }
}

fn report(id: String, found: &RuleComparison) -> FirewallCandidateReport {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let refused = found.problems.iter().take(REFUSED_MAX);
    FirewallCandidateReport {
        id,
        added: count(found.added),
        removed: count(found.removed),
        changed: count(found.changed),
        rules: count(found.rules),
        entries: u64::try_from(found.entries).unwrap_or(u64::MAX),
        parts: found.parts.iter().map(|part| (*part).to_owned()).collect(),
        refused: refused.map(refusal).collect(),
        error: String::new(),
    }
}
