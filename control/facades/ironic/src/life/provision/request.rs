//! The body of a request for another provision state.

use control_state::query::ProvisionEvent;
use serde_json::Value;

use crate::error::IronicError;
use crate::life::refusals::not_acceptable;
use crate::patch::ObjectReader;
use crate::version::ApiVersion;

/// Fields of a request.
const FIELDS: [&str; 8] = [
    "target",
    "configdrive",
    "clean_steps",
    "deploy_steps",
    "service_steps",
    "rescue_password",
    "disable_ramdisk",
    "runbook",
];
/// Verbs that a microversion introduced, `1.N`. All others are older than those that are served.
const NEW_VERBS: [(ProvisionEvent, u16); 2] =
    [(ProvisionEvent::Unhold, 85), (ProvisionEvent::Service, 87)];
/// Microversion from which runbooks stand for steps.
const RUNBOOKS: u16 = 92;
/// Microversion from which service knows `disable_ramdisk`.
const SERVICE_WITHOUT_RAMDISK: u16 = 108;

/// A request, as far as its shape was checked.
#[derive(Debug)]
pub(super) struct ProvisionRequest<'a> {
    /// The target, as the client wrote it.
    pub(super) target: &'a str,
    /// The configuration drive: an object, a text, or `Null`.
    pub(super) configdrive: &'a Value,
    /// Steps of a manual clean. Empty means that there are none.
    pub(super) clean_steps: &'a [Value],
    /// Steps of a deployment.
    pub(super) deploy_steps: &'a [Value],
    /// Steps of a service.
    pub(super) service_steps: &'a [Value],
    /// `true` if steps are done without the installer.
    pub(super) disable_ramdisk: Option<bool>,
    /// The runbook whose steps are done. `None` means that the request has its own.
    pub(super) runbook: Option<&'a str>,
    /// `true` if there is a password for a rescue system that is not blank.
    has_password: bool,
}

impl<'a> ProvisionRequest<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// 400 for an unknown field, and for a field of another type.
    pub(super) fn parse(body: &'a Value) -> Result<Self, IronicError> {
        let reader = ObjectReader::new(body);
        reader.check_known(&FIELDS)?;
        let target = reader.text("target")?;
        let target = target.ok_or_else(|| IronicError::invalid("target: is missing"))?;
        let configdrive = reader.value("configdrive");
        if !matches!(
            configdrive,
            Value::Null | Value::Object(_) | Value::String(_)
        ) {
            let text = "configdrive: must be an object or a text";
            return Err(IronicError::invalid(text));
        }
        let nothing: &'a [Value] = &[];
        let steps = |name: &str| match reader.value(name) {
            Value::Null => Ok(nothing),
            Value::Array(steps) => Ok(steps.as_slice()),
            _ => Err(IronicError::invalid(format!("{name}: must be a list"))),
        };
        let password = reader.text("rescue_password")?.unwrap_or_default();
        Ok(Self {
            target,
            configdrive,
            clean_steps: steps("clean_steps")?,
            deploy_steps: steps("deploy_steps")?,
            service_steps: steps("service_steps")?,
            disable_ramdisk: reader.flag("disable_ramdisk")?,
            runbook: reader.text("runbook")?,
            has_password: !password.trim().is_empty(),
        })
    }

    /// The verb that the target stands for.
    ///
    /// # Errors
    /// 400 for another text, 406 for a verb that is newer than the microversion.
    pub(super) fn verb(&self, version: ApiVersion) -> Result<ProvisionEvent, IronicError> {
        let event = ProvisionEvent::of_verb(self.target).ok_or_else(|| {
            let text = format!(
                "The requested action \"{}\" could not be understood.",
                self.target
            );
            IronicError::invalid(text)
        })?;
        let introduced = NEW_VERBS.into_iter().find(|(verb, _)| *verb == event);
        match introduced {
            Some((_, since)) if !version.has(since) => Err(not_acceptable(self.target, since)),
            _ => Ok(event),
        }
    }

    /// Refuses fields that do not belong to the verb.
    ///
    /// # Errors
    /// 400, or 406 for a field that is newer than the microversion.
    pub(super) fn check_fields(
        &self,
        verb: ProvisionEvent,
        version: ApiVersion,
    ) -> Result<(), IronicError> {
        use ProvisionEvent::{Clean, Deploy, Rebuild, Rescue, Service};
        let is_deployment = matches!(verb, Deploy | Rebuild);
        let has_steps = matches!(verb, Clean | Service);
        for (is_there, field, belongs, targets) in [
            (
                !self.configdrive.is_null(),
                "configdrive",
                is_deployment,
                "active or rebuild",
            ),
            (
                !self.deploy_steps.is_empty(),
                "deploy_steps",
                is_deployment,
                "active or rebuild",
            ),
            (
                !self.clean_steps.is_empty(),
                "clean_steps",
                verb == Clean,
                "clean",
            ),
            (
                !self.service_steps.is_empty(),
                "service_steps",
                verb == Service,
                "service",
            ),
            (
                self.runbook.is_some(),
                "runbook",
                has_steps,
                "clean or service",
            ),
            (
                self.disable_ramdisk.is_some(),
                "disable_ramdisk",
                has_steps,
                "clean or service",
            ),
            (
                self.has_password,
                "rescue_password",
                verb == Rescue,
                "rescue",
            ),
        ] {
            if is_there && !belongs {
                return Err(IronicError::invalid(format!(
                    "\"{field}\" is only valid when setting target provision state to {targets}"
                )));
            }
        }
        if verb == Rescue && !self.has_password {
            let text = "A non-empty \"rescue_password\" is required when setting target provision \
                        state to rescue";
            return Err(IronicError::invalid(text));
        }
        let is_new = verb == Service && self.disable_ramdisk.is_some();
        if is_new && !version.has(SERVICE_WITHOUT_RAMDISK) {
            return Err(not_acceptable("disable_ramdisk", SERVICE_WITHOUT_RAMDISK));
        }
        if self.runbook.is_some() && !version.has(RUNBOOKS) {
            return Err(not_acceptable("runbook", RUNBOOKS));
        }
        Ok(())
    }

    /// The steps of the request's own for this verb.
    pub(super) fn own_steps(&self, verb: ProvisionEvent) -> &'a [Value] {
        match verb {
            ProvisionEvent::Clean => self.clean_steps,
            ProvisionEvent::Service => self.service_steps,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::*;

    const NEWEST: ApiVersion = ApiVersion::of(115);

    fn checked(body: &Value, version: ApiVersion) -> Result<ProvisionEvent, IronicError> {
        let request = ProvisionRequest::parse(body)?;
        let verb = request.verb(version)?;
        request.check_fields(verb, version)?;
        Ok(verb)
    }

    #[test]
    fn requests_and_their_verbs() {
        let step = json!([{"interface": "deploy", "step": "erase_devices"}]);
        for (body, expected) in [
            (json!({"target": "manage"}), ProvisionEvent::Manage),
            (
                json!({"target": "active", "configdrive": {"meta_data": {}}, "deploy_steps": []}),
                ProvisionEvent::Deploy,
            ),
            (
                json!({"target": "deleted", "clean_steps": null}),
                ProvisionEvent::Delete,
            ),
            (
                json!({"target": "clean", "clean_steps": step}),
                ProvisionEvent::Clean,
            ),
            (
                json!({"target": "service", "runbook": "CUSTOM_A"}),
                ProvisionEvent::Service,
            ),
            (
                json!({"target": "rescue", "rescue_password": "s3cret"}),
                ProvisionEvent::Rescue,
            ),
        ] {
            assert_eq!(checked(&body, NEWEST), Ok(expected), "{body}");
        }
    }

    #[test]
    fn fields_of_other_verbs_are_refused() {
        let step = json!([{"interface": "deploy", "step": "erase_devices"}]);
        for (body, part) in [
            (Value::Null, "must be a JSON object"),
            (json!({}), "target: is missing"),
            (
                json!({"target": "dance"}),
                "\"dance\" could not be understood",
            ),
            (json!({"target": "done"}), "could not be understood"),
            (
                json!({"target": "manage", "force": true}),
                "'force' was unexpected",
            ),
            (
                json!({"target": "active", "configdrive": 1}),
                "an object or a text",
            ),
            (
                json!({"target": "clean", "clean_steps": {}}),
                "clean_steps: must be a list",
            ),
            (
                json!({"target": "provide", "configdrive": "x"}),
                "state to active or rebuild",
            ),
            (
                json!({"target": "provide", "clean_steps": step}),
                "state to clean",
            ),
            (
                json!({"target": "clean", "service_steps": step}),
                "state to service",
            ),
            (
                json!({"target": "clean", "deploy_steps": step}),
                "state to active or rebuild",
            ),
            (
                json!({"target": "manage", "runbook": "r"}),
                "state to clean or service",
            ),
            (
                json!({"target": "manage", "disable_ramdisk": true}),
                "state to clean or service",
            ),
            (
                json!({"target": "manage", "rescue_password": "x"}),
                "state to rescue",
            ),
            (
                json!({"target": "rescue", "rescue_password": " "}),
                "A non-empty",
            ),
        ] {
            let refused = checked(&body, NEWEST).unwrap_err();
            assert!(refused.text.contains(part), "{body}: {}", refused.text);
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        }
    }

    #[test]
    fn newer_verbs_and_fields_need_their_microversion() {
        for (body, since) in [
            (json!({"target": "unhold"}), 85),
            (json!({"target": "service"}), 87),
            (json!({"target": "clean", "runbook": "r"}), 92),
            (json!({"target": "service", "disable_ramdisk": true}), 108),
            (json!({"target": "undeploy"}), 1),
        ] {
            let version = ApiVersion::of(since);
            assert!(checked(&body, version).is_ok(), "{body}");
            if since > 80 {
                let older = ApiVersion::of(since - 1);
                let refused = checked(&body, older).unwrap_err();
                assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE, "{body}");
            }
        }
    }
}
