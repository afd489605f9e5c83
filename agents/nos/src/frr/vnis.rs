//! EVPN's VNIs as FRR shows them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::Vni;

/// The command whose output is read.
pub(super) const COMMAND: &str = "show evpn vni json";

/// Most VNIs that are read. More are left out.
pub const VNIS_MAX: usize = 20_000;

/// A VNI that zebra knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvpnVni {
    /// The VNI.
    pub vni: Vni,
    /// `true` if it is of a VRF (routed), `false` if of a segment (bridged).
    pub routed: bool,
    /// Its VXLAN device. `None` if there is none yet.
    pub device: Option<String>,
    /// VRF of its bridge, "default" for the default VRF. `None` if the kernel has no such VRF.
    pub vrf: Option<String>,
    /// Remote switches that the segment is on. `None` for a VRF's VNI.
    pub remote_vteps: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    vni: u32,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    vxlan_if: String,
    #[serde(default)]
    tenant_vrf: String,
    /// A number, or "n/a" for a VRF's VNI.
    #[serde(default)]
    num_remote_vteps: Value,
}

/// Reads the VNIs, ascending. Members that are none are passed over. FRR prints nothing at all
/// where EVPN is off: no VNIs.
///
/// # Errors
/// When it is not a JSON object.
pub fn decode(json: &[u8]) -> Result<Vec<EvpnVni>, serde_json::Error> {
    if json.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let all: BTreeMap<String, Value> = serde_json::from_slice(json)?;
    let shown = all.into_values().take(VNIS_MAX).filter_map(|value| {
        let shown: Shown = serde_json::from_value(value).ok()?;
        Some(EvpnVni {
            vni: Vni::new(shown.vni).ok()?,
            routed: shown.kind == "L3",
            device: Some(shown.vxlan_if).filter(|name| name != "None" && !name.is_empty()),
            vrf: Some(shown.tenant_vrf).filter(|name| name != "Unknown" && !name.is_empty()),
            remote_vteps: shown.num_remote_vteps.as_u64(),
        })
    });
    let mut vnis: Vec<EvpnVni> = shown.collect();
    vnis.sort_by_key(|known| known.vni);
    Ok(vnis)
}
