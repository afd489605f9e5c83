//! Talks to FRR's daemons over their own sockets, as vtysh does.
//!
//! Each run of vtysh builds the commands of all daemons first, which takes longer than most answers
//! and changes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::delta::Block;
use super::error::FrrError;
use super::refresh::Refresh;

/// Directory of the sockets (Debian's package). Those of a path space are in one of its name.
const DIR: &str = "/var/run/frr";
/// Return code of a command that was carried out (`CMD_SUCCESS`).
const SUCCESS: u8 = 0;
/// Return codes of a daemon that does not know a line: no match, ambiguous, incomplete.
const UNKNOWN: std::ops::RangeInclusive<u8> = 2..=4;

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
        self.in_time(self.answer(daemon, command)).await
    }

    async fn answer(&self, daemon: &'static str, command: &str) -> Result<String, FrrError> {
        let mut session = Session::open(self, daemon).await?;
        session.order(command).await
    }

    fn failed(&self, daemon: &'static str, source: io::Error) -> FrrError {
        match source.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => FrrError::NoDaemon(daemon),
            _ => FrrError::Run {
                command: self.dir.join(format!("{daemon}.vty")).display().to_string(),
                source,
            },
        }
    }

    /// `true` if the daemons can be changed without vtysh. Where there is an mgmtd (FRR 10), it
    /// keeps a part of zebra's configuration, and vtysh knows which.
    pub(super) fn can_change(&self) -> bool {
        !self.dir.join("mgmtd.vty").exists()
    }

    /// Enters the lines of blocks in their order, each at the daemons that keep its object, up to
    /// the first that is refused.
    ///
    /// # Errors
    /// [`FrrError::Refused`] with the line; those before it are done. [`FrrError::NoDaemon`] if
    /// nobody listens.
    pub(super) async fn change(&self, blocks: &[Block]) -> Result<(), FrrError> {
        self.in_time(self.enter(blocks, false)).await
    }

    /// As [`VtySockets::change`], for blocks that may be loaded: FRR commits them together, which is
    /// much faster where there are many.
    ///
    /// # Errors
    /// As [`VtySockets::change`].
    pub(super) async fn load(&self, blocks: &[Block]) -> Result<(), FrrError> {
        match self.in_time(self.enter(blocks, true)).await {
            Err(FrrError::Refused { .. } | FrrError::Command { .. }) => {}
            other => return other,
        }
        // FRR names all lines that it would have committed together. Which one it is: each alone.
        // Lines that were accepted are accepted again.
        for block in blocks {
            self.change(std::slice::from_ref(block)).await?;
        }
        Ok(())
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, FrrError>>,
    ) -> Result<T, FrrError> {
        let work = tokio::time::timeout(self.timeout, work);
        work.await.map_err(|_| FrrError::Timeout(self.timeout))?
    }

    async fn enter(&self, blocks: &[Block], in_bulk: bool) -> Result<(), FrrError> {
        let mut sessions: Vec<Session<'_>> = Vec::new();
        for daemon in ["zebra", "bgpd"] {
            if blocks
                .iter()
                .any(|block| block.object.daemons().contains(&daemon))
            {
                let mut session = Session::open(self, daemon).await?;
                session.order("configure terminal").await?;
                if in_bulk {
                    session.order("XFRR_start_configuration").await?;
                    session.is_bulk = true;
                }
                sessions.push(session);
            }
        }
        let entered = enter_lines(&mut sessions, blocks).await;
        // Also after a refusal: what came before it would stay in FRR, uncommitted, for the next
        // who configures.
        let mut ended = Ok(());
        for session in &mut sessions {
            if in_bulk {
                ended = ended.and(session.order("XFRR_end_configuration").await.map(drop));
            }
            ended = ended.and(session.order("end").await.map(drop));
        }
        entered.and(ended)
    }

    /// Has bgpd judge the routes of peers again.
    ///
    /// # Errors
    /// As [`VtySockets::ask`].
    pub(super) async fn refresh(&self, peers: &[Refresh]) -> Result<(), FrrError> {
        let refresh = async {
            let mut session = Session::open(self, "bgpd").await?;
            for peer in peers {
                session.order(&peer.command()).await?;
            }
            Ok(())
        };
        self.in_time(refresh).await
    }
}

async fn enter_lines(sessions: &mut [Session<'_>], blocks: &[Block]) -> Result<(), FrrError> {
    for block in blocks {
        for line in &block.lines {
            // One that leaves a section would end FRR's transaction, of which each takes some
            // 60 ms where there are thousands of filters; the next section leaves it as well.
            let leaves = matches!(line.as_str(), "exit" | "exit-vrf");
            if leaves && sessions.iter().any(|session| session.is_bulk) {
                continue;
            }
            enter_line(sessions, block, line).await?;
        }
    }
    Ok(())
}

/// Gives a line to each daemon that keeps the block's object. One of them has to take it: a filter
/// of bgpd may have lines that zebra does not know.
async fn enter_line(
    sessions: &mut [Session<'_>],
    block: &Block,
    line: &str,
) -> Result<(), FrrError> {
    let mut unknown = Some(String::new());
    for session in sessions {
        if !block.object.daemons().contains(&session.daemon) {
            continue;
        }
        let (code, said) = session.say(line).await?;
        match code {
            SUCCESS if session.has_refused(&said) => return Err(refused(block, line, &said)),
            SUCCESS => unknown = None,
            code if UNKNOWN.contains(&code) => {
                unknown = unknown.map(|_| said);
            }
            _ => return Err(refused(block, line, &said)),
        }
    }
    unknown.map_or(Ok(()), |said| Err(refused(block, line, &said)))
}

fn refused(block: &Block, line: &str, said: &str) -> FrrError {
    FrrError::Refused {
        object: block.object.clone(),
        line: line.trim().to_owned(),
        reason: super::driver::brief(said, ""),
    }
}

/// A connection to one daemon, in its enabled mode.
struct Session<'s> {
    sockets: &'s VtySockets,
    daemon: &'static str,
    stream: UnixStream,
    /// It enters lines that FRR commits together.
    is_bulk: bool,
}

impl<'s> Session<'s> {
    async fn open(sockets: &'s VtySockets, daemon: &'static str) -> Result<Self, FrrError> {
        let socket = sockets.dir.join(format!("{daemon}.vty"));
        let stream = UnixStream::connect(&socket).await;
        let stream = stream.map_err(|source| sockets.failed(daemon, source))?;
        let mut session = Self {
            sockets,
            daemon,
            stream,
            is_bulk: false,
        };
        session.order("enable").await?;
        Ok(session)
    }

    /// The answer to a command that has to succeed.
    async fn order(&mut self, command: &str) -> Result<String, FrrError> {
        let (code, said) = self.say(command).await?;
        if code == SUCCESS && !self.has_refused(&said) {
            return Ok(said);
        }
        Err(FrrError::Command {
            line: command.to_owned(),
            reason: super::driver::brief(&said, ""),
        })
    }

    /// `true` if FRR, with its code for success, says that it has refused lines that it had
    /// accepted before.
    fn has_refused(&self, said: &str) -> bool {
        self.is_bulk && said.starts_with('%')
    }

    /// The return code of a command, and its text.
    async fn say(&mut self, command: &str) -> Result<(u8, String), FrrError> {
        let (sockets, daemon) = (self.sockets, self.daemon);
        let failed = |source| sockets.failed(daemon, source);
        let bytes = [command.as_bytes(), &[0]].concat();
        self.stream.write_all(&bytes).await.map_err(failed)?;
        let answer = read(&mut self.stream, sockets.output_max).await;
        let (code, said) = answer.map_err(failed)?;
        let Some(said) = said else {
            return Err(FrrError::TooMuchOutput(sockets.output_max));
        };
        // FRR prints ASCII; an operator's banner may not be.
        Ok((code, String::from_utf8_lossy(&said).into_owned()))
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
