//! The check of fragments as chains.

use super::{quoted, sources};
use crate::compile::fragments::{FRAGMENTS_AT_ONCE, FRAGMENTS_PER_SECOND, bounded};
use crate::compile::source_rule::SourceCheck;
use crate::rule::RuleSet;

/// The chains. The one that drops is that of the check of forwarded packets.
pub(super) fn chains(rules: &RuleSet) -> String {
    let check = SourceCheck::fragments(rules);
    let Some(jump) = sources::jump(&check) else {
        return String::new();
    };
    let mut text = sources::chain(&check);
    text.push_str(&format!("  chain fragments {{\n    {jump}\n"));
    for network in bounded(rules) {
        let names = quoted(&network.interfaces);
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
