//! How each message of the contract is written, made once.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost_reflect::{MessageDescriptor, Syntax};

use super::field::{Field, field};

pub(super) static PLANS: LazyLock<Plans> = LazyLock::new(Plans::make);

/// A message's fields in the order of numbers.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Plans {
    places: HashMap<String, usize>,
    plans: Vec<Plan>,
}

impl Plans {
    pub(super) fn of(&self, full_name: &str) -> Option<&Plan> {
        self.at(*self.places.get(full_name)?)
    }

    pub(super) fn at(&self, place: usize) -> Option<&Plan> {
        self.plans.get(place)
    }

    fn make() -> Self {
        let ours = |message: &MessageDescriptor| {
            message.parent_file().syntax() == Syntax::Proto3
                && (message.full_name().starts_with("metalstack.")
                    || message.full_name().starts_with("metalmesh."))
        };
        let messages: Vec<_> = crate::pool().all_messages().filter(ours).collect();
        let places: HashMap<_, _> = messages
            .iter()
            .enumerate()
            .map(|(place, message)| (message.full_name().to_owned(), place))
            .collect();
        let plan = |message: &MessageDescriptor| {
            let mut fields: Vec<_> = message
                .fields()
                .map(|field_of| field(&field_of, &places))
                .collect();
            fields.sort_by_key(|field| field.number);
            Plan { fields }
        };
        let plans = messages.iter().map(plan).collect();
        Self { places, plans }
    }
}
