//! Reads from FRR's daemons over their own sockets, as vtysh does.
//!
//! Each run of vtysh builds the commands of all daemons first, which takes longer than most answers.
//! Changes go through vtysh nevertheless: it knows which daemon a line is for.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::error::FrrError;

/// Directory of the sockets (Debian's package). Those of a path space are in one of its name.
const DIR: &str = "/var/run/frr";
/// Return code of a command that was carried out (`CMD_SUCCESS`).
const SUCCESS: u8 = 0;

/// The sockets of one FRR.
#[derive(Clone, Debug)]
pub(super) struct VtySockets {
    dir: PathBuf,
    /// Time that one answer may take.
    timeout: Duration,
    /// Bytes that one answer may have.
    output_max: usize,
}

impl VtySockets {
    /// The sockets that a vtysh of this host uses. `None` if it is another program, or has arguments
    /// that are not known here.
    pub(super) fn of(command: &[String], timeout: Duration, output_max: usize) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        if Path::new(program).file_name()? != "vtysh" {
            return None;
        }
        let dir = match arguments {
            [] => PathBuf::from(DIR),
            [option, space] if option == "-N" => Path::new(DIR).join(space),
            _ => return None,
        };
        Some(Self {
            dir,
            timeout,
            output_max,
        })
    }

    /// A daemon's answer to a command in its enabled mode.
    ///
    /// # Errors
    /// [`FrrError::NoDaemon`] if nobody listens, [`FrrError::Command`] if the daemon refuses.
    pub(super) async fn ask(
        &self,
        daemon: &'static str,
        command: &str,
    ) -> Result<String, FrrError> {
        let answer = tokio::time::timeout(self.timeout, self.answer(daemon, command));
        answer.await.map_err(|_| FrrError::Timeout(self.timeout))?
    }

    async fn answer(&self, daemon: &'static str, command: &str) -> Result<String, FrrError> {
        let socket = self.dir.join(format!("{daemon}.vty"));
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => FrrError::NoDaemon(daemon),
            _ => FrrError::Run {
                command: socket.display().to_string(),
                source,
            },
        };
        let mut stream = UnixStream::connect(&socket).await.map_err(failed)?;
        let mut text = String::new();
        for line in ["enable", command] {
            let bytes = [line.as_bytes(), &[0]].concat();
            stream.write_all(&bytes).await.map_err(failed)?;
            let (code, said) = read(&mut stream, self.output_max).await.map_err(failed)?;
            let Some(said) = said else {
                return Err(FrrError::TooMuchOutput(self.output_max));
            };
            // FRR prints ASCII; an operator's banner may not be.
            text = String::from_utf8_lossy(&said).into_owned();
            if code != SUCCESS {
                return Err(FrrError::Command {
                    line: line.to_owned(),
                    reason: super::driver::brief(&text, ""),
                });
            }
        }
        Ok(text)
    }
}

/// Reads one answer: the return code, and the text, `None` if it is longer than `most` bytes.
async fn read(stream: &mut UnixStream, most: usize) -> io::Result<(u8, Option<Vec<u8>>)> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Three zeros and the command's return code (`vtysh_client_run` of FRR 8.4).
        if let Some((text, &[0, 0, 0, code])) = bytes.split_last_chunk() {
            let length = text.len();
            bytes.truncate(length);
            return Ok((code, (length <= most).then_some(bytes)));
        }
        if bytes.len() > most.saturating_add(4) {
            return Ok((SUCCESS, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sockets_are_known_for_a_vtysh_of_this_host_alone() {
        let dir = |words: &[&str]| {
            let sockets = VtySockets::of(&command(words), Duration::from_secs(1), 9);
            sockets.map(|sockets| sockets.dir.display().to_string())
        };
        assert_eq!(dir(&["vtysh"]).as_deref(), Some("/var/run/frr"));
        let space = dir(&["/usr/bin/vtysh", "-N", "leaf1"]);
        assert_eq!(space.as_deref(), Some("/var/run/frr/leaf1"));
        for other in [
            &[][..],
            &["docker", "exec", "-i", "bgp", "vtysh"],
            &["vtysh", "-d"],
            &["/tmp/other"],
        ] {
            assert_eq!(dir(other), None, "{other:?}");
        }
    }

    /// Asks a daemon that answers each command with one of these, in several parts.
    async fn ask(answers: [&'static [&'static [u8]]; 2]) -> Result<String, FrrError> {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("bgpd.vty")).unwrap();
        let sockets = VtySockets {
            dir: dir.path().to_owned(),
            timeout: Duration::from_secs(10),
            output_max: 20,
        };
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            for parts in answers {
                let mut command = Vec::new();
                while !command.ends_with(&[0]) {
                    if stream.read_buf(&mut command).await.unwrap() == 0 {
                        return;
                    }
                }
                for part in parts {
                    stream.write_all(part).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::join!(sockets.ask("bgpd", "show version"), serve).0
    }

    #[tokio::test]
    async fn an_answer_ends_with_its_code() {
        const ENABLED: &[&[u8]] = &[b"\0\0\0\0"];
        let got = ask([ENABLED, &[b"FRR ", b"8.4\n\0", b"\0\0\0"]]).await;
        assert_eq!(got.unwrap(), "FRR 8.4\n");
        let refused = ask([ENABLED, &[b"% Unknown command\0\0\0\x02"]]).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("Unknown command"), "{refused}");
        let ended = ask([ENABLED, &[b"half"]]).await;
        assert!(
            matches!(ended, Err(FrrError::NoDaemon("bgpd"))),
            "{ended:?}"
        );
        let long = ask([ENABLED, &[&[b'a'; 40]]]).await;
        assert!(matches!(long, Err(FrrError::TooMuchOutput(20))), "{long:?}");
    }

    #[tokio::test]
    async fn a_daemon_that_does_not_run_is_named() {
        let space = command(&["vtysh", "-N", "no-such-space"]);
        let sockets = VtySockets::of(&space, Duration::from_secs(1), 9).unwrap();
        let error = sockets.ask("zebra", "show version").await.unwrap_err();
        assert_eq!(error.to_string(), "zebra does not answer");
    }
}
