//! The processor time of programs, to find what a slow run waits for.

use std::collections::BTreeMap;
use std::fs;

/// Ticks of the processor in a second (`_SC_CLK_TCK`): 100 on every Linux of x86-64.
const TICKS: u64 = 100;

/// Prints the seconds that processes of each name have used, their own and those of their ended
/// children.
pub(crate) fn print() {
    let mut used: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(text) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((name, rest)) = text.rsplit_once(')') else {
            continue;
        };
        let name = name.split_once('(').map_or("", |(_, name)| name);
        let fields: Vec<u64> = rest
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        // utime, stime, cutime and cstime: fields 14 to 17 (proc(5)), of which two stand before.
        if let Some([user, system, child_user, child_system]) = fields.get(11..15) {
            let of = used.entry(name.to_owned()).or_default();
            of[0] += user + system;
            of[1] += child_user + child_system;
        }
    }
    let mut used: Vec<_> = used.into_iter().collect();
    used.sort_by_key(|(_, [own, children])| std::cmp::Reverse(own + children));
    for (name, [own, children]) in used.into_iter().take(12) {
        let (own, children) = (own / TICKS, children / TICKS);
        println!("processor: {name}: {own} s, its ended children {children} s");
    }
}
