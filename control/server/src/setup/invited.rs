//! Reads the invitation. It comes from standard input and never from the arguments, which every user
//! of the host can read.

use std::io::{IsTerminal as _, Read, Write as _};

use anyhow::{Context as _, Result};
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use proto_identity::invitation::NodeInvitation;
use proto_identity::ticket::FILE_LEN_MAX;

/// Reads the invitation from standard input; at a terminal the line is asked for, and not shown.
///
/// # Errors
/// It is none, or cut.
pub(super) fn read() -> Result<NodeInvitation> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return parse(stdin.lock());
    }
    let mut stderr = std::io::stderr();
    write!(
        stderr,
        "invitation (the line mmi1... of metalmesh cluster invite): "
    )?;
    stderr.flush()?;
    let shown = tcgetattr(&stdin).context("cannot ask at this terminal")?;
    let mut hidden = shown.clone();
    hidden.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(&stdin, SetArg::TCSANOW, &hidden).context("cannot ask at this terminal")?;
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    // The echo must come back before an error is returned.
    tcsetattr(&stdin, SetArg::TCSANOW, &shown).context("cannot ask at this terminal")?;
    writeln!(stderr)?;
    read.context("cannot read the invitation")?;
    parse(line.as_bytes())
}

/// Reads an invitation. The error quotes nothing of the input, which may be the secret.
fn parse(input: impl Read) -> Result<NodeInvitation> {
    let mut text = String::new();
    let bytes_max = u64::try_from(FILE_LEN_MAX + 1)?;
    input
        .take(bytes_max)
        .read_to_string(&mut text)
        .context("cannot read the invitation from standard input")?;
    // The whole pasted line was meant for a shell.
    let pasted = text.trim();
    let line = match pasted.strip_prefix("printf %s ") {
        Some(rest) => rest.split_whitespace().next().unwrap_or_default(),
        None => pasted,
    };
    NodeInvitation::parse(line).context(
        "standard input: paste the whole line that `metalmesh cluster invite HOST:PORT` printed",
    )
}

#[cfg(test)]
mod tests {
    use proto_identity::ticket::{JoinTicket, SECRET_LEN};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_line_is_read_with_or_without_its_command() {
        let invitation = NodeInvitation {
            ticket: JoinTicket {
                id: "node-2".into(),
                secret: [7; SECRET_LEN],
                roots: vec!["ab".repeat(32)],
                control: vec!["10.0.0.1:4443".into()],
                tpm: false,
            },
            cluster: "east".into(),
            cluster_id: Uuid::from_u128(5),
            trust_domain: "east.example".into(),
            peer_address: "control-2:4444".into(),
        };
        let line = invitation.encode();
        for text in [
            line.clone(),
            format!("{line}\n"),
            format!("printf %s {line} | metalmeshd join\n"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), invitation);
        }
        for text in ["", "printf %s ", &line[..90]] {
            let error = format!("{:#}", parse(text.as_bytes()).unwrap_err());
            assert!(error.contains("metalmesh cluster invite"), "{error}");
            assert!(!error.contains(&line[5..60]), "{error}");
        }
    }
}
