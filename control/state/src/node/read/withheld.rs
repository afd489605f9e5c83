//! Why a node is on offer to nobody.

use proto_types::MachineId;

use crate::node::entity::{NodeContent, NodeRecord};
use crate::tables::Tables;

/// The reason why the node of a machine withholds it, for people.
pub(crate) fn withholding_reason(tables: &Tables, machine: MachineId) -> String {
    let record = tables.get::<NodeRecord>(&machine);
    let reason = record.and_then(|record| reason_of(&record.content));
    reason.unwrap_or_else(|| "its node is withheld".to_owned())
}

/// The reason by the content alone. `None` means that it withholds nothing.
fn reason_of(content: &NodeContent) -> Option<String> {
    let with = |what: &str, reason: &str| match reason {
        "" => what.to_owned(),
        reason => format!("{what}: {reason}"),
    };
    if let Some(maintenance) = &content.maintenance {
        return Some(with("it is in maintenance", &maintenance.reason));
    }
    if let Some(reason) = &content.retired {
        return Some(with("it is retired", reason));
    }
    let stage = content.stage.as_ref()?;
    let state = stage.state;
    let reason = || {
        let verb = state.as_str();
        format!("a client of Ironic's API took it off the offer, by a verb that led to \"{verb}\"")
    };
    state.withholds().then(reason)
}

#[cfg(test)]
mod tests {
    use proto_types::Timestamp;

    use super::*;
    use crate::node::entity::{NodeMaintenance, NodeStage, ProvisionState};

    #[test]
    fn every_content_that_withholds_says_why() {
        let maintenance = |reason: &str| NodeMaintenance {
            reason: reason.to_owned(),
            since: Timestamp::ZERO,
        };
        let stage = |state| NodeStage {
            state,
            since: Timestamp::ZERO,
            boot_id: String::new(),
            phase_since: Timestamp::ZERO,
            error: String::new(),
        };
        let inspected = stage(ProvisionState::InspectWait);
        let of = |maintenance, retired, stage| NodeContent {
            maintenance,
            retired,
            stage,
            ..NodeContent::default()
        };
        for (content, expected) in [
            (NodeContent::default(), None),
            (
                of(Some(maintenance("")), None, None),
                Some("it is in maintenance"),
            ),
            (
                of(Some(maintenance("fan")), None, Some(inspected.clone())),
                Some("it is in maintenance: fan"),
            ),
            (
                of(None, Some("old".to_owned()), Some(inspected.clone())),
                Some("it is retired: old"),
            ),
            (
                of(None, None, Some(inspected)),
                Some(
                    "a client of Ironic's API took it off the offer, by a verb that led to \
                     \"inspect wait\"",
                ),
            ),
            (of(None, None, Some(stage(ProvisionState::CleanWait))), None),
            (
                of(None, None, Some(stage(ProvisionState::ServiceFailed))),
                None,
            ),
        ] {
            assert_eq!(reason_of(&content).as_deref(), expected);
            assert_eq!(content.withholds(), expected.is_some());
        }
    }
}
