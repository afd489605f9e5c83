//! The calls of a roll.

use anyhow::{Context as _, Result, bail, ensure};
use proto_public::api::v2::{
    IpQuery, IpServiceListRequest, IpType, Machine, MachineQuery, MachineServiceCreateRequest,
    MachineServiceDeleteRequest, NetworkType,
};
use proto_public::metalmesh::admin::v1::{
    FirewallReplacementStep, FirewallRulesServiceReplaceFirewallRequest,
    FirewallRulesServiceReplaceFirewallResponse, FirewallStatus,
};
use tonic::metadata::MetadataValue;
use tonic::{Request, Status};

use super::RollArgs;
use super::step::RollView;
use super::wanted::{firewall, is_replacement_of, wanted};
use crate::app::App;
use crate::cmd::firewall::list::firewalls;
use crate::cmd::firewall::service::RulesService;
use crate::cmd::given;
use crate::cmd::machine::wait;
use crate::show::{label, machine_state, newest, reason};

/// Most replacements of one firewall that fail and are freed within a day, which is the life of an
/// idempotency key. Further ones are refused.
const ATTEMPTS_MAX: u32 = 32;
/// Codes of the refusals of an idempotency key that was used for another request, or for a machine
/// that was freed.
const KEY_REFUSALS: [&str; 2] = ["MM-1011 ", "MM-1012 "];

/// The calls about one firewall and its replacement.
pub(super) struct RollCalls<'a> {
    app: &'a App,
    service: RulesService<'a>,
    /// UUID of the firewall that is replaced.
    pub(super) old: String,
}

impl<'a> RollCalls<'a> {
    /// Resolves the name of a firewall.
    pub(super) async fn of(app: &'a App, name: &str) -> Result<Self> {
        let service = RulesService::of(app, false).await?;
        let old = app.machine_id(name).await?;
        Ok(Self { app, service, old })
    }

    /// Both firewalls now. `None` means that the project has no such firewall.
    pub(super) async fn view(&self) -> Result<Option<RollView>> {
        let mut all = firewalls(&self.service).await?;
        let Some(at) = all.iter().position(|status| status.firewall == self.old) else {
            return Ok(None);
        };
        let old = all.swap_remove(at);
        let new = match old.replaced_by.is_empty() {
            true => self.unprepared().await?,
            false => Some(old.replaced_by.clone()),
        };
        let is_new = |status: &FirewallStatus| new.as_ref() == Some(&status.firewall);
        let new = all
            .into_iter()
            .find(|status| is_new(status) && !status.freed);
        let Some(status) = new else {
            return Ok(Some(RollView {
                old,
                ..RollView::default()
            }));
        };
        let machine = self.app.machine(&status.firewall).await?;
        Ok(Some(RollView {
            old,
            new: Some(status),
            progress: newest(&machine).map(|_| wait::progress(&machine)),
            failure: failure(&machine),
        }))
    }

    /// The firewall that took the place of one that is gone.
    pub(super) async fn successor(&self) -> Result<Option<FirewallStatus>> {
        let all = firewalls(&self.service).await?;
        let took =
            |status: &FirewallStatus| status.replaces == self.old && status.took_over_at.is_some();
        Ok(all.into_iter().find(took))
    }

    /// A replacement that was allocated, and that control was not told about yet.
    async fn unprepared(&self) -> Result<Option<String>> {
        let old = self.app.machine(&self.old).await?;
        let allocation = &firewall(&old)?.uuid;
        let machines = self.app.machines(MachineQuery::default()).await?;
        let mut own = machines
            .into_iter()
            .filter(|machine| is_replacement_of(machine, allocation));
        Ok(own.next().map(|machine| machine.uuid))
    }

    /// The request for the replacement.
    ///
    /// # Errors
    /// The firewall has static addresses, unless new ones are wanted.
    pub(super) async fn wanted(&self, args: &RollArgs) -> Result<MachineServiceCreateRequest> {
        let old = self.app.machine(&self.old).await?;
        let request = wanted(&old, args)?;
        let fixed = self.static_addresses(&old).await?;
        ensure!(
            fixed.is_empty() || args.new_addresses,
            "the firewall has the static addresses {}, which its replacement cannot have at the \
             same time; use --new-addresses, and change rules and peers that name them",
            fixed.join(", ")
        );
        Ok(request)
    }

    /// Static addresses of a firewall in its networks.
    async fn static_addresses(&self, old: &Machine) -> Result<Vec<String>> {
        let request = IpServiceListRequest {
            project: self.service.project.clone(),
            query: Some(IpQuery {
                machine: Some(self.old.clone()),
                r#type: Some(IpType::Static.into()),
                ..IpQuery::default()
            }),
        };
        let found = self.app.client.ips().list(request).await?.into_inner().ips;
        let networks = firewall(old)?.networks.iter();
        let own: Vec<&str> = networks
            .filter(|network| network.network_type() != NetworkType::Underlay)
            .map(|network| network.network.as_str())
            .collect();
        let fixed = found
            .into_iter()
            .filter(|ip| own.contains(&ip.network.as_str()));
        Ok(fixed.map(|ip| ip.ip).collect())
    }

    /// Allocates a replacement. A call that was interrupted and is repeated gets the same one.
    pub(super) async fn allocate(&self, request: MachineServiceCreateRequest) -> Result<Machine> {
        let old = self.app.machine(&self.old).await?;
        let allocation = &firewall(&old)?.uuid;
        for attempt in 0..ATTEMPTS_MAX {
            let mut call = Request::new(request.clone());
            let key = format!("firewall-roll-{allocation}-{attempt}");
            let key = MetadataValue::try_from(key).context("the idempotency key is no header")?;
            call.metadata_mut().insert("idempotency-key", key);
            match self.app.client.machines().create(call).await {
                Ok(made) => return given(made.into_inner().machine),
                // Of an earlier replacement, which was freed.
                Err(status) if is_of_another(&status) => {}
                Err(status) => return Err(status.into()),
            }
        }
        bail!("{ATTEMPTS_MAX} replacements of this firewall were freed within a day; wait")
    }

    /// Has control carry out a step of the replacement.
    pub(super) async fn step(&self, by: &str, step: FirewallReplacementStep) -> Result<()> {
        let request = FirewallRulesServiceReplaceFirewallRequest {
            project: self.service.project.clone(),
            firewall: self.old.clone(),
            by: by.to_owned(),
            step: step.into(),
        };
        let _answer: FirewallRulesServiceReplaceFirewallResponse =
            self.service.call("ReplaceFirewall", &request).await?;
        Ok(())
    }

    /// Frees a firewall.
    pub(super) async fn free(&self, uuid: &str) -> Result<()> {
        let request = MachineServiceDeleteRequest {
            uuid: uuid.to_owned(),
            project: self.service.project.clone(),
        };
        self.app.client.machines().delete(request).await?;
        Ok(())
    }
}

/// The reason why a machine will never run. `None` means that it may.
fn failure(machine: &Machine) -> Option<String> {
    let phase = label(machine, "metalmesh.dev/phase").unwrap_or_default();
    if machine_state(machine) == "tainted" {
        return Some(format!("it is tainted: {}", reason(machine)));
    }
    let is_held = phase.starts_with("held");
    is_held.then(|| format!("its installation failed: {}", wait::progress(machine)))
}

fn is_of_another(status: &Status) -> bool {
    KEY_REFUSALS
        .iter()
        .any(|code| status.message().starts_with(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_an_earlier_attempt_is_told_from_other_refusals() {
        for (message, wanted) in [
            (
                "MM-1012 machine \"m\" of idempotency key \"k\" was freed",
                true,
            ),
            (
                "MM-1011 idempotency key \"k\" was used with a different request",
                true,
            ),
            ("MM-1203 no machine of size \"s\" is available", false),
        ] {
            let status = Status::aborted(message);
            assert_eq!(is_of_another(&status), wanted, "{message}");
        }
    }
}
