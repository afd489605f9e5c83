//! Packets that reach the machine of another tenant.

use std::collections::BTreeMap;

/// Packets that another tenant's machine saw.
pub(crate) type Crossed = Vec<String>;

/// The place of a machine while packets came to it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Both leaves have it in the place of a tenant.
    Of(char),
    /// On the way to a tenant or from it.
    Between(char),
    Nobodys,
}

/// Judges the packets that came to a machine.
///
/// The mark of a machine that comes or goes is in lower case, and nobody's is a dash. Where there is
/// no tenant, they are the business of the provisioning segment.
pub(crate) fn judge(number: u8, place: Place, seen: &BTreeMap<char, u64>) -> Crossed {
    let is_stranger = |of: char| match place {
        Place::Of(tenant) => of.to_ascii_uppercase() != tenant,
        Place::Between(tenant) => of.is_ascii_uppercase() && of != tenant,
        Place::Nobodys => of.is_ascii_uppercase(),
    };
    let strangers = seen.iter().filter(|(of, _)| is_stranger(**of));
    let say = |(of, count): (&char, &u64)| format!("m{number} {place:?}: {count} of {of}");
    strangers.map(say).collect()
}
