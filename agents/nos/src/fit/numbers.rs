use std::collections::BTreeMap;

use crate::model::{Table, Vlan};
use crate::problem::{Refusal, SwitchObject};
use crate::vni::Vni;

/// A number that one object of a switch has alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Number {
    Vni(Vni),
    Vlan(Vlan),
    Table(Table),
}

/// The objects that have a number already.
#[derive(Default)]
pub(super) struct TakenNumbers(BTreeMap<Number, SwitchObject>);

impl TakenNumbers {
    /// Takes all numbers for an object, or none if another object has one of them.
    pub(super) fn take(
        &mut self,
        numbers: &[Option<Number>],
        object: &SwitchObject,
    ) -> Result<(), Refusal> {
        let numbers = || numbers.iter().flatten();
        let taken = numbers().find_map(|number| Some((number, self.0.get(number)?)));
        if let Some((number, by)) = taken {
            return Err(Refusal::Taken {
                number: number.to_string(),
                by: Box::new(by.clone()),
            });
        }
        let taken = numbers().map(|number| (*number, object.clone()));
        self.0.extend(taken);
        Ok(())
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Vni(vni) => write!(f, "VNI {vni}"),
            Self::Vlan(vlan) => write!(f, "VLAN {vlan}"),
            Self::Table(table) => write!(f, "table {table}"),
        }
    }
}
