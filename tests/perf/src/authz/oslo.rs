//! Decisions by rules of Ironic in oslo.policy's language: the defaults, and the guide's own file.

use std::hint::black_box;
use std::rc::Rc;

use anyhow::{Result, ensure};
use control_oslo::{Credentials, OsloPolicy, PolicyFile, PolicyTarget, ironic};

use super::timing::{Measured, timed};

/// Target of each row, ns.
pub(super) const MAX_NS: f64 = 1_000.0;
const PROVISION: &str = "baremetal:node:set_provision_state";

/// A decision about a node that `p` owns and `q` leases.
pub(super) struct OsloRow {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    policy: Rc<OsloPolicy>,
    rule: &'static str,
    caller: Credentials,
    permitted: bool,
}

impl OsloRow {
    pub(super) fn measure(&self, thousands: u32) -> Result<Measured> {
        let decide = || {
            let target = PolicyTarget::node(black_box(Some("p")), black_box(Some("q")));
            self.policy
                .decide(black_box(self.rule), &self.caller, &target)
                .is_permitted()
        };
        ensure!(decide() == self.permitted, "{}", self.name);
        timed(thousands, decide)
    }
}

pub(super) fn rows() -> Result<Vec<OsloRow>> {
    let guide = include_str!("../../../../control/oslo/tests/data/guide-metalsmith.yaml");
    let defaults = Rc::new(ironic::policy(&PolicyFile::default())?);
    let guide = Rc::new(ironic::policy(&PolicyFile::parse(guide)?)?);
    let row = |name, title, policy: &Rc<OsloPolicy>, caller, permitted| OsloRow {
        name,
        title,
        policy: Rc::clone(policy),
        rule: PROVISION,
        caller,
        permitted,
    };
    let admin = ["admin", "manager", "member", "reader"];
    Ok(vec![
        row(
            "oslo_owner",
            "rule of Ironic, a member of the owner, permitted",
            &defaults,
            Credentials::project("p", ["member", "reader"]),
            true,
        ),
        row(
            "oslo_stranger",
            "rule of Ironic, an admin of another project, refused",
            &defaults,
            Credentials::project("x", admin),
            false,
        ),
        row(
            "oslo_system",
            "rule of Ironic, an admin of the system, permitted",
            &defaults,
            Credentials::system(admin),
            true,
        ),
        row(
            "oslo_guide",
            "the same rule by the guide's file, a member of the owner",
            &guide,
            Credentials::project("p", ["member", "reader"]),
            true,
        ),
    ])
}
