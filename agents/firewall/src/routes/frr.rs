//! FRR's route map for the EVPN, read and changed by vtysh.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::distance::RouteDistance;

/// Route map of what the firewall announces to the EVPN. hammer writes it.
const ROUTE_MAP: &str = "MM-EVPN-OUT";
/// The entry of the route map that permits.
const ENTRY: u32 = 10;
/// Longest run of vtysh. Beyond it the run is killed and fails.
const VTYSH_LIMIT: Duration = Duration::from_secs(5);
/// Longest message of vtysh in an error, characters. The rest is cut.
const MESSAGE_MAX: usize = 200;

/// A reason why the distance cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrrError {
    /// vtysh cannot be run.
    #[error("cannot run vtysh")]
    Run(#[from] io::Error),
    /// It did not end in time.
    #[error("vtysh did not answer within {VTYSH_LIMIT:?}")]
    Slow,
    /// bgpd has no such route map.
    #[error("bgpd has no route map {ROUTE_MAP}; it is not configured yet, or by somebody else")]
    NoRouteMap,
    /// vtysh refused a command.
    #[error("vtysh: {0}")]
    Refused(String),
}

/// Reads how many AS numbers bgpd puts in front of paths.
///
/// # Errors
/// FRR does not answer, or has no such route map.
pub(super) async fn read() -> Result<usize, FrrError> {
    let shown = vtysh(&[format!("show route-map {ROUTE_MAP}")]).await?;
    prepended(&shown).ok_or(FrrError::NoRouteMap)
}

/// Changes the distance.
///
/// # Errors
/// FRR does not answer, or refuses the command.
pub(super) async fn write(distance: RouteDistance) -> Result<(), FrrError> {
    let commands = [
        "configure terminal".to_owned(),
        format!("route-map {ROUTE_MAP} permit {ENTRY}"),
        distance.command(),
    ];
    vtysh(&commands).await.map(drop)
}

async fn vtysh(commands: &[String]) -> Result<String, FrrError> {
    let mut program = Command::new("vtysh");
    for command in commands {
        program.args(["-c", command]);
    }
    let output = program.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(VTYSH_LIMIT, output)
        .await
        .map_err(|_| FrrError::Slow)??;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let said = text + &String::from_utf8_lossy(&output.stderr);
    let said = said.trim().chars().take(MESSAGE_MAX).collect();
    Err(FrrError::Refused(said))
}

/// The number of AS numbers that bgpd's part of a shown route map prepends. `None` if bgpd has no
/// such route map.
fn prepended(shown: &str) -> Option<usize> {
    let (_, bgp) = shown.split_once("BGP:")?;
    let lines: Vec<&str> = bgp.lines().map(str::trim).collect();
    let is_known = lines.iter().any(|line| line.starts_with("route-map:"));
    let numbers = lines
        .iter()
        .find_map(|line| line.strip_prefix("as-path prepend "));
    is_known.then(|| numbers.map_or(0, |numbers| numbers.split_whitespace().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of FRR 8.4.4.
    fn shown(set: &str) -> String {
        format!(
            "ZEBRA:\nroute-map: MM-EVPN-OUT Invoked: 0 Optimization: enabled Processed Change: true\n \
             permit, sequence 10 Invoked 0\n  Match clauses:\n  Set clauses:\n  Call clause:\n  \
             Action:\n    Exit routemap\nBGP:\nroute-map: MM-EVPN-OUT Invoked: 0 Optimization: \
             enabled Processed Change: true\n permit, sequence 10 Invoked 0\n  Match clauses:\n    \
             as-path MM-SELF\n  Set clauses:\n{set}  Call clause:\n  Action:\n    Exit routemap\n"
        )
    }

    #[test]
    fn what_frr_shows_is_understood() {
        for (text, wanted) in [
            (shown(""), Some(0)),
            (shown("    as-path prepend 65000 65000\n"), Some(2)),
            (
                "ZEBRA:\nBGP:\nBGP: 'route-map MM-EVPN-OUT' not found\n".into(),
                None,
            ),
            ("ZEBRA:\n".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(prepended(&text), wanted, "{text}");
        }
    }
}
