//! Asks a new program, before it is used, whether it accepts the configuration of the running one.

use std::fs::Permissions;
use std::io::{Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use proto_firewall::printable;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::process::own_id;

/// Name of the hidden command that runs a new program as nobody.
pub const PROBE_COMMAND: &str = "probe-program";
/// Longest time for an answer.
const PROBE_MAX: Duration = Duration::from_secs(60);
/// Longest output that is read, bytes.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;

/// The configuration that a new program must accept. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ProbeJob {
    /// Its text.
    pub text: Arc<str>,
    /// Counts the objects in the text that the running program refuses: the new one may refuse as many.
    pub refused: fn(&str) -> usize,
}

/// The part of the output of `check` that counts.
#[derive(Debug, Deserialize)]
struct CheckOutput {
    problems: Vec<serde_json::Value>,
}

/// Runs `check` of a new program with the configuration, as nobody and without a network, if this process
/// has the rights for that.
///
/// # Errors
/// It cannot be run, refuses the configuration, or refuses objects that are in force.
pub(super) async fn probe(program: &Path, job: &ProbeJob) -> Result<(), String> {
    let failed = |error: std::io::Error| {
        format!("probe: the new program cannot be run: {error}; build it for this host")
    };
    let input = configuration_file(&job.text).map_err(failed)?;
    let parent = own_id().map_err(failed)?;
    // This very program, also if its file was replaced.
    let mut child = Command::new("/proc/self/exe")
        .arg(PROBE_COMMAND)
        .arg("--parent")
        .arg(parent)
        .arg(program)
        .env_clear()
        .stdin(Stdio::from(input))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let run = async {
        // Both at once: a full pipe would stop the program.
        let read = tokio::join!(bounded(output), bounded(errors));
        child.wait().await.map(|_| read)
    };
    let Ok(ended) = timeout(PROBE_MAX, run).await else {
        let seconds = PROBE_MAX.as_secs();
        return Err(format!(
            "probe: the new program did not check the configuration within {seconds} s"
        ));
    };
    let (output, errors) = ended.map_err(failed)?;
    judge(&output, &errors, (job.refused)(&job.text))
}

/// The configuration, so that the new program needs no right to open the file.
fn configuration_file(text: &str) -> std::io::Result<std::fs::File> {
    let mut file = tempfile::tempfile_in("/dev/shm").or_else(|_| tempfile::tempfile())?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    // It is opened anew by the new program, which is nobody. It has no name for others.
    file.set_permissions(Permissions::from_mode(0o444))?;
    // The new program gets no descriptor that writes.
    std::fs::File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

async fn bounded(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // A program that breaks off has said what it has said.
        let _ended = pipe.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes).await;
    }
    bytes
}

/// Judges the output of `check`. `refused` is the number of objects that the running program refuses.
fn judge(output: &[u8], errors: &[u8], refused: usize) -> Result<(), String> {
    let Ok(answer) = serde_json::from_slice::<CheckOutput>(output) else {
        let errors = String::from_utf8_lossy(errors);
        let shown = printable(errors.trim());
        return Err(format!(
            "probe: the new program does not accept the configuration: {shown}; correct it, or \
             choose another version"
        ));
    };
    if answer.problems.len() > refused {
        let first = answer.problems.first().map(ToString::to_string);
        let shown = printable(&first.unwrap_or_default());
        return Err(format!(
            "probe: the new program refuses {} objects instead of {refused}, such as {shown}; \
             correct them, or choose another version",
            answer.problems.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_new_program_refuses_no_more_than_the_running_one() {
        for (output, refused, expected) in [
            (r#"{"name": "a", "rules": 3, "problems": []}"#, 0, Ok(())),
            (r#"{"problems": [{"object": "a"}]}"#, 1, Ok(())),
            (
                r#"{"problems": [{"object": "a"}]}"#,
                0,
                Err("refuses 1 objects instead of 0"),
            ),
            (
                "",
                0,
                Err("does not accept the configuration: line 3: a\\u{1b}"),
            ),
            ("not JSON", 9, Err("does not accept")),
        ] {
            let found = judge(output.as_bytes(), b"line 3: a\x1b\n", refused);
            match (&found, expected) {
                (Ok(()), Ok(())) => {}
                (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
                _ => panic!("{output}: {found:?}"),
            }
        }
    }
}
