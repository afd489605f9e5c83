//! Rows of tables, one implementation for each message.

mod claim;
mod cluster;
mod fabric;
mod firewall;
mod lease;
mod machine;
mod provided;
mod tenancy;

pub(crate) use cluster::state_of;
pub(crate) use fabric::place;
pub(crate) use firewall::{firewall_health, firewall_role};
pub(crate) use machine::{
    event_name, label, last_event, machine_state, newest, phase, port_actual, reason,
};
pub(crate) use provided::{REQUIRE_BMC_NONCE, UPLINKS};
#[cfg(test)]
pub(crate) use provided::{bmc_nonce, uplinks};

use crate::text::or_dash;

/// Implements [`TableRow`]: titles and cells, those of wide tables after the bar.
macro_rules! row {
    ($type:ty, $name:literal, |$row:ident| [$($title:literal: $cell:expr),* $(,)?],
     wide [$($wide_title:literal: $wide_cell:expr),* $(,)?]) => {
        impl TableRow for $type {
            const NAME: &'static str = $name;
            fn titles(wide: bool) -> Vec<&'static str> {
                let mut titles = vec![$($title),*];
                if wide {
                    titles.extend_from_slice(&[$($wide_title),*]);
                }
                titles
            }
            fn cells(&self, wide: bool) -> Vec<String> {
                let $row = self;
                let mut cells: Vec<String> = vec![$($cell.into()),*];
                if wide {
                    let more: Vec<String> = vec![$($wide_cell.into()),*];
                    cells.extend(more);
                }
                cells
            }
        }
    };
}

use row;

fn maybe(text: Option<&String>) -> String {
    or_dash(text.cloned().unwrap_or_default())
}
