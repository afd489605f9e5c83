//! The neighbours of gateways: how they are learned, and how many there may be.

use std::path::Path;

use super::requests::set_device;
use crate::back_end::NosError;

/// Sizes of the kernel's neighbour tables, entries: at the last no host can be added, above the
/// second idle ones go after five seconds, below the first none goes. The kernel's own (128, 512,
/// 1,024) are those of a host; all tenants of a leaf share one table.
const SIZES: [(&str, u32); 3] = [
    ("gc_thresh3", 65_536),
    ("gc_thresh2", 32_768),
    ("gc_thresh1", 8_192),
];

/// Lets a gateway learn hosts from answers that it did not ask for. All leaves of a segment have the
/// gateway's addresses, so the answer to one leaf's question may arrive at another one: EVPN then
/// carries it to the first. And hosts send each other's packets through the gateway on purpose: no
/// redirects.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn hear_hosts(bridge: &str) -> Result<(), NosError> {
    // Not 2, which is for the gateway's own prefixes alone: the kernel would not count a prefix whose
    // address on the gateway is the first one, of the scope of the host.
    set_device("ipv4", bridge, "arp_accept", "1")?;
    // For its own prefixes alone; kernels before 6.0 know only all or none.
    let own = set_device("ipv6", bridge, "accept_untracked_na", "2");
    own.or_else(|_| set_device("ipv6", bridge, "accept_untracked_na", "1"))?;
    for family in ["ipv4", "ipv6"] {
        enlarge(Path::new("/proc/sys/net").join(family).as_path());
    }
    set_device("ipv4", "all", "send_redirects", "0")?;
    set_device("ipv4", bridge, "send_redirects", "0")
}

/// Enlarges the table of a family. An operator's larger one stays, and a namespace that is not the
/// host's has no table of its own.
fn enlarge(family: &Path) {
    for (key, size) in SIZES {
        let path = family.join("neigh/default").join(key);
        let now = std::fs::read_to_string(&path).ok();
        let now = now.and_then(|text| text.trim().parse::<u32>().ok());
        if now.is_none_or(|now| now >= size) {
            continue;
        }
        if let Err(error) = std::fs::write(&path, size.to_string()) {
            tracing::warn!(path = %path.display(), %error, "the neighbour table stays small");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SIZES, enlarge};

    #[test]
    fn a_table_grows_and_never_shrinks() {
        let dir = tempfile::tempdir().unwrap();
        enlarge(dir.path());
        let table = dir.path().join("neigh/default");
        std::fs::create_dir_all(&table).unwrap();
        for (given, expected) in [("1024", "65536"), ("200000", "200000")] {
            let path = table.join("gc_thresh3");
            std::fs::write(&path, given).unwrap();
            enlarge(dir.path());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        }
        assert!(SIZES.is_sorted_by(|one, next| one.1 > next.1));
    }
}
