//! The check of fragments as chains.

use super::sets::address_field;
use super::{quoted, sources};
use crate::compile::fragments::{
    FRAGMENTS_AT_ONCE, FRAGMENTS_PER_SECOND, SENDER_AT_ONCE, SENDER_LEN_V6, SENDER_MS,
    SENDER_PER_SECOND, SENDERS_MAX, bounded,
};
use crate::compile::source_rule::SourceCheck;
use crate::rule::RuleSet;

/// The sets and chains. The one that drops is that of the check of forwarded packets.
pub(super) fn chains(rules: &RuleSet) -> String {
    let check = SourceCheck::fragments(rules);
    let Some(jump) = sources::jump(&check) else {
        return String::new();
    };
    let mut text = String::new();
    for (number, kind) in [(4, "ipv4_addr"), (6, "ipv6_addr")] {
        text.push_str(&format!(
            "  set fragment-senders{number} {{ type ifname . {kind}; size {SENDERS_MAX}; \
             flags dynamic,timeout; timeout {}s; }}\n",
            SENDER_MS / 1000
        ));
    }
    text.push_str(&sources::chain(&check));
    text.push_str(&format!("  chain fragments {{\n    {jump}\n"));
    for network in bounded(rules) {
        let names = quoted(&network.interfaces);
        for (number, family, sender) in [
            (4, "ipv4", address_field(true, "saddr", 32)),
            (6, "ipv6", address_field(false, "saddr", SENDER_LEN_V6)),
        ] {
            text.push_str(&format!(
                "    meta nfproto {family} iifname {{ {names} }} update @fragment-senders{number} \
                 {{ iifname . {sender} limit rate over {SENDER_PER_SECOND}/second burst \
                 {SENDER_AT_ONCE} packets }} counter drop\n"
            ));
        }
        text.push_str(&format!(
            "    iifname {{ {names} }} limit rate over {FRAGMENTS_PER_SECOND}/second burst \
             {FRAGMENTS_AT_ONCE} packets counter drop\n"
        ));
    }
    text.push_str(
        "  }\n  chain arriving {\n    \
         type filter hook prerouting priority -450; policy accept;\n    \
         ip frag-off & 0x3fff != 0 jump fragments\n    \
         exthdr frag exists jump fragments\n  }\n",
    );
    text
}
