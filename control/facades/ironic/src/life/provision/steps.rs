//! Steps of a manual clean, or of a service, that metalmesh can do.

use control_state::BmcAction;
use serde_json::{Map, Value};

use crate::error::IronicError;
use crate::secrets::without_secrets;

/// Most steps of a request; more are refused.
const STEPS_MAX: usize = 64;
/// Longest part of a step in a message, characters.
const SHOWN_MAX: usize = 512;
/// Keys of a step.
const KEYS: [&str; 6] = [
    "interface",
    "step",
    "args",
    "order",
    "execute_on_child_nodes",
    "limit_child_node_execution",
];
/// Interfaces that have steps.
const INTERFACES: [&str; 7] = [
    "bios",
    "deploy",
    "firmware",
    "management",
    "power",
    "raid",
    "vendor",
];
/// Steps of the interface `deploy` that a wipe of all disks fulfils.
const ERASES: [&str; 3] = [
    "erase_devices",
    "erase_devices_metadata",
    "erase_devices_express",
];

/// Kind of a list of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    /// Of a manual clean: the disks may be wiped.
    Clean,
    /// Of a service: the system stays.
    Service,
}

/// The steps of a request as metalmesh does them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StepPlan {
    /// `true` if the disks are wiped. There are no other steps then.
    pub(super) wipes: bool,
    /// Orders to the BMC, in their order.
    pub(super) orders: Vec<BmcAction>,
    /// `true` if the node is held after the orders, until a client ends the hold.
    pub(super) holds: bool,
}

impl StepKind {
    /// Name in messages, and begin of the name of the request's field.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Service => "service",
        }
    }
}

impl StepPlan {
    /// The plan of these steps, in the order that they name.
    ///
    /// # Errors
    /// 400 for a malformed step, for one that metalmesh cannot do, and for steps that it cannot do
    /// together.
    pub(super) fn of(
        kind: StepKind,
        steps: &[Value],
        without_ramdisk: bool,
    ) -> Result<Self, IronicError> {
        let name = kind.as_str();
        if steps.is_empty() {
            return Err(IronicError::invalid(format!(
                "\"{name}_steps\" is required when setting target provision state to {name}"
            )));
        }
        if steps.len() > STEPS_MAX {
            let text = format!("Invalid {name}_steps: there are at most {STEPS_MAX}");
            return Err(IronicError::invalid(text));
        }
        let mut ordered = Vec::new();
        for step in steps {
            let fields = checked(kind, step)?;
            ordered.push((order(kind, step, fields)?, step, fields));
        }
        ordered.sort_by_key(|(order, ..)| *order);
        let mut plan = Self::default();
        for (_, step, fields) in ordered {
            plan.add(kind, step, fields)?;
        }
        if plan.wipes && without_ramdisk {
            let text = format!("{name} step erase_devices requires booting a ramdisk");
            return Err(IronicError::invalid(text));
        }
        Ok(plan)
    }

    /// Adds a step to those before it.
    fn add(
        &mut self,
        kind: StepKind,
        step: &Value,
        fields: &Map<String, Value>,
    ) -> Result<(), IronicError> {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let (interface, name) = (text("interface"), text("step"));
        let is_erase = kind == StepKind::Clean && interface == "deploy" && ERASES.contains(&name);
        let action = match name {
            "power_on" => Some(BmcAction::PowerOn),
            "power_off" => Some(BmcAction::PowerOff),
            "reboot" => Some(BmcAction::PowerCycle),
            _ => None,
        };
        let is_hold = name == "hold";
        if !is_erase && !is_hold && action.is_none() {
            let (kind, step) = (kind.as_str(), shown(step));
            let text = format!("node does not support this {kind} step: {step}");
            return Err(IronicError::invalid(text));
        }
        let is_first = *self == Self::default();
        // Hammer wipes after its boot, which a power step would cut off, and reports the end of the
        // wipe and not of a list.
        if self.holds || (self.wipes && !is_erase) || (is_erase && !is_first && !self.wipes) {
            let text = format!(
                "node does not support these {} steps together: an erase stands alone, and a hold is \
                 the last step",
                kind.as_str()
            );
            return Err(IronicError::invalid(text));
        }
        self.wipes |= is_erase;
        self.holds |= is_hold;
        self.orders.extend(action);
        Ok(())
    }
}

/// The fields of a step.
///
/// # Errors
/// 400 as Ironic's schema of steps has it, and for steps of children, which metalmesh has not.
fn checked(kind: StepKind, step: &Value) -> Result<&Map<String, Value>, IronicError> {
    let invalid = |rule: &str| {
        let (name, step) = (kind.as_str(), shown(step));
        Err(IronicError::invalid(format!(
            "Invalid {name}_steps: {rule}: {step}"
        )))
    };
    let Value::Object(fields) = step else {
        return invalid("a step is an object");
    };
    if fields.keys().any(|key| !KEYS.contains(&key.as_str())) {
        return invalid("a step has no other key than interface, step, args and order");
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    if !text("interface").is_some_and(|interface| INTERFACES.contains(&interface)) {
        return invalid("interface is none of a driver");
    }
    if text("step").is_none_or(str::is_empty) {
        return invalid("step is missing");
    }
    let has_args = match fields.get("args") {
        None | Some(Value::Null) => false,
        Some(Value::Object(args)) => !args.is_empty(),
        Some(_) => return invalid("args is an object"),
    };
    if has_args {
        return invalid("the step has unexpected arguments");
    }
    let of_children = fields.get("execute_on_child_nodes");
    match of_children {
        None | Some(Value::Null | Value::Bool(false)) => Ok(fields),
        Some(_) => invalid("no step is executed on child nodes"),
    }
}

/// The place of a step among the others. Steps of requests have none, and stay as they are.
fn order(kind: StepKind, step: &Value, fields: &Map<String, Value>) -> Result<u64, IronicError> {
    let found = match fields.get("order") {
        None | Some(Value::Null) => Some(0),
        Some(Value::String(text)) => text.parse::<u64>().ok(),
        Some(other) => other.as_u64(),
    };
    found.ok_or_else(|| {
        let (name, step) = (kind.as_str(), shown(step));
        let text = format!("Invalid {name}_steps: order is a number from 0: {step}");
        IronicError::invalid(text)
    })
}

/// A step in a message: its begin, without the secrets of its arguments, which clients write to their logs.
fn shown(step: &Value) -> String {
    let text = without_secrets(step).to_string();
    text.chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(interface: &str, step: &str) -> Value {
        json!({ "interface": interface, "step": step })
    }

    fn planned(kind: StepKind, steps: &[Value]) -> Result<StepPlan, String> {
        StepPlan::of(kind, steps, false).map_err(|error| error.text)
    }

    #[test]
    fn steps_that_can_be_done() {
        use BmcAction::{PowerCycle, PowerOff, PowerOn};
        let orders = |orders: &[BmcAction], holds| StepPlan {
            wipes: false,
            orders: orders.to_vec(),
            holds,
        };
        let wipe = StepPlan {
            wipes: true,
            ..StepPlan::default()
        };
        let late_on = json!({"interface": "power", "step": "power_on", "order": "2"});
        let early_off = json!({"interface": "power", "step": "power_off", "order": 1, "args": {}});
        for (kind, steps, expected) in [
            (
                StepKind::Clean,
                vec![step("deploy", "erase_devices")],
                wipe.clone(),
            ),
            (
                StepKind::Clean,
                vec![
                    step("deploy", "erase_devices_metadata"),
                    step("deploy", "erase_devices"),
                ],
                wipe,
            ),
            (
                StepKind::Clean,
                vec![step("deploy", "hold")],
                orders(&[], true),
            ),
            (
                StepKind::Service,
                vec![step("power", "reboot"), step("vendor", "hold")],
                orders(&[PowerCycle], true),
            ),
            (
                StepKind::Service,
                vec![late_on, early_off],
                orders(&[PowerOff, PowerOn], false),
            ),
        ] {
            assert_eq!(planned(kind, &steps), Ok(expected), "{steps:?}");
        }
    }

    #[test]
    fn steps_that_cannot_be_done_are_refused() {
        let erase = step("deploy", "erase_devices");
        let hold = step("deploy", "hold");
        let on = step("power", "power_on");
        for (kind, steps, part) in [
            (StepKind::Clean, vec![], "\"clean_steps\" is required"),
            (
                StepKind::Service,
                vec![erase.clone()],
                "does not support this service step",
            ),
            (
                StepKind::Clean,
                vec![step("raid", "create_configuration")],
                "this clean step",
            ),
            (
                StepKind::Clean,
                vec![step("bios", "erase_devices")],
                "this clean step",
            ),
            (
                StepKind::Clean,
                vec![step("power", "wait")],
                "this clean step",
            ),
            (
                StepKind::Clean,
                vec![erase.clone(), hold.clone()],
                "together",
            ),
            (StepKind::Clean, vec![on.clone(), erase.clone()], "together"),
            (StepKind::Clean, vec![hold, on], "together"),
            (StepKind::Clean, vec![json!("erase")], "a step is an object"),
            (
                StepKind::Clean,
                vec![step("rescue", "hold")],
                "none of a driver",
            ),
            (
                StepKind::Clean,
                vec![json!({"interface": "deploy"})],
                "step is missing",
            ),
            (
                StepKind::Clean,
                vec![json!({"interface": "deploy", "step": "hold", "priority": 1})],
                "no other key",
            ),
            (
                StepKind::Clean,
                vec![json!({"interface": "deploy", "step": "hold", "args": {"a": 1}})],
                "unexpected arguments",
            ),
            (
                StepKind::Clean,
                vec![json!({"interface": "deploy", "step": "hold", "order": -1})],
                "order is a number",
            ),
            (
                StepKind::Clean,
                vec![json!({
                    "interface": "power",
                    "step": "power_on",
                    "execute_on_child_nodes": true,
                })],
                "child nodes",
            ),
            (StepKind::Clean, vec![erase; STEPS_MAX + 1], "at most 64"),
        ] {
            let refused = planned(kind, &steps).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn a_wipe_needs_the_installer() {
        let erase = [step("deploy", "erase_devices")];
        let hold = [step("deploy", "hold")];
        assert!(StepPlan::of(StepKind::Clean, &erase, true).is_err());
        assert!(StepPlan::of(StepKind::Clean, &hold, true).is_ok());
        let longest = vec![erase[0].clone(); STEPS_MAX];
        assert!(StepPlan::of(StepKind::Clean, &longest, false).is_ok());
    }

    #[test]
    fn refusals_show_no_secret_and_are_short() {
        for args in [
            json!({"password": "s3cret"}),
            json!({"nested": {"token": "s3cret"}}),
            json!({"a": "x".repeat(4 * SHOWN_MAX), "secret": "s3cret"}),
        ] {
            let step = json!({"interface": "raid", "step": "apply", "args": args});
            let refused = planned(StepKind::Clean, &[step]).unwrap_err();
            assert!(!refused.contains("s3cret"), "{refused}");
            assert!(refused.len() < 2 * SHOWN_MAX, "{refused}");
        }
    }
}
