//! The databases of SONiC, in one redis.

use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::address::Address;
use super::db::Db;
use super::error::SonicError;
use super::resp::{self, Answer};
use super::rows::{Change, Row, Rows};

/// Most keys that one search in a database visits: a table of a million routes is no reason to
/// read for ever.
const KEYS_VISITED_MAX: usize = 2_000_000;
/// Most keys that one search finds: 128 ports and 4,000 VLANs need a tenth of it.
const KEYS_FOUND_MAX: usize = 50_000;
/// Commands that are sent before their answers are read.
const ROUND_MAX: usize = 256;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection. One that failed, or whose caller went away in the middle, is made anew.
pub(super) struct Database {
    address: Address,
    /// Time that redis may take for one round of commands.
    limit: Duration,
    stream: Mutex<Option<Connection>>,
}

type Connection = BufReader<Box<dyn Stream>>;

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Database {
    pub(super) fn new(address: Address, limit: Duration) -> Self {
        Self {
            address,
            limit,
            stream: Mutex::new(None),
        }
    }

    /// Sends commands to a database and reads their answers.
    pub(super) async fn ask(
        &self,
        db: Db,
        commands: &[Vec<&str>],
    ) -> Result<Vec<Answer>, SonicError> {
        let mut answers = Vec::new();
        let mut stream = self.stream.lock().await;
        for round in commands.chunks(ROUND_MAX) {
            // Taken out: answers that nobody reads any more would be those of the next commands.
            let connection = stream.take();
            let asked = timeout(self.limit, self.round(connection, db, round)).await;
            let (connection, some) =
                asked.map_err(|_| SonicError::Silent(self.address.to_string(), self.limit))??;
            *stream = Some(connection);
            answers.extend(some);
        }
        drop(stream);
        if let Some(Answer::Refused(reason)) =
            answers.iter().find(|a| matches!(a, Answer::Refused(_)))
        {
            return Err(SonicError::Refused(reason.clone()));
        }
        Ok(answers)
    }

    async fn round(
        &self,
        connection: Option<Connection>,
        db: Db,
        commands: &[Vec<&str>],
    ) -> Result<(Connection, Vec<Answer>), SonicError> {
        let failed = |source| SonicError::Away(self.address.to_string(), source);
        let mut connection = match connection {
            Some(connection) => connection,
            None => self.connect().await.map_err(failed)?,
        };
        let mut bytes = Vec::new();
        let number = (db as u8).to_string();
        resp::encode(&["SELECT", &number], &mut bytes);
        for command in commands {
            resp::encode(command, &mut bytes);
        }
        connection
            .get_mut()
            .write_all(&bytes)
            .await
            .map_err(failed)?;
        let selected = resp::read(&mut connection).await.map_err(failed)?;
        if let Answer::Refused(reason) = selected {
            return Err(SonicError::Refused(reason));
        }
        let mut answers = Vec::new();
        for _ in commands {
            answers.push(resp::read(&mut connection).await.map_err(failed)?);
        }
        Ok((connection, answers))
    }

    async fn connect(&self) -> std::io::Result<Connection> {
        let stream: Box<dyn Stream> = match &self.address {
            Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Address::Tcp(address) => Box::new(TcpStream::connect(address).await?),
        };
        Ok(BufReader::new(stream))
    }

    /// The keys that begin with one of `prefixes`.
    pub(super) async fn keys(&self, db: Db, prefixes: &[&str]) -> Result<Vec<String>, SonicError> {
        let (mut cursor, mut visited) = ("0".to_owned(), 0);
        let mut found = std::collections::BTreeSet::new();
        loop {
            let command = vec!["SCAN", cursor.as_str(), "COUNT", "2000"];
            let answer = self.ask(db, &[command]).await?.pop();
            let (next, keys) = page(answer).ok_or(SonicError::Answer("SCAN"))?;
            visited += keys.len();
            let keys = keys.into_iter();
            found.extend(keys.filter(|key| prefixes.iter().any(|prefix| key.starts_with(prefix))));
            if visited > KEYS_VISITED_MAX || found.len() > KEYS_FOUND_MAX {
                return Err(SonicError::TooMuch(KEYS_FOUND_MAX));
            }
            if next == "0" {
                return Ok(found.into_iter().collect());
            }
            cursor = next;
        }
    }

    /// Rows by key. A key without a row is left out.
    pub(super) async fn rows(&self, db: Db, keys: &[String]) -> Result<Rows, SonicError> {
        let commands: Vec<_> = keys
            .iter()
            .map(|key| vec!["HGETALL", key.as_str()])
            .collect();
        let answers = self.ask(db, &commands).await?;
        let mut rows = Rows::new();
        for (key, answer) in keys.iter().zip(answers) {
            let words = answer.texts().ok_or(SonicError::Answer("HGETALL"))?;
            let row: Row = words
                .chunks_exact(2)
                .filter_map(|pair| match pair {
                    [name, value] => Some((name.clone(), value.clone())),
                    _ => None,
                })
                .collect();
            if !row.is_empty() {
                rows.insert(key.clone(), row);
            }
        }
        Ok(rows)
    }

    /// Changes rows of `CONFIG_DB`, all of them at once.
    pub(super) async fn change(&self, changes: &[Change]) -> Result<(), SonicError> {
        let mut commands = vec![vec!["MULTI"]];
        for change in changes {
            commands.extend(change.commands());
        }
        commands.push(vec!["EXEC"]);
        let answers = self.ask(Db::Config, &commands).await?;
        let done = answers.into_iter().next_back();
        match done {
            Some(Answer::Many(all)) if !all.iter().any(|a| matches!(a, Answer::Refused(_))) => {
                Ok(())
            }
            _ => Err(SonicError::Answer("EXEC")),
        }
    }

    /// Runs `heard` for every change in the databases that a subscription to `patterns` tells of,
    /// until the connection ends.
    pub(super) async fn follow(
        &self,
        patterns: &[&str],
        mut heard: impl FnMut(),
    ) -> Result<(), SonicError> {
        let failed = |source| SonicError::Away(self.address.to_string(), source);
        let mut connection = self.connect().await.map_err(failed)?;
        let mut bytes = Vec::new();
        let command: Vec<&str> = ["PSUBSCRIBE"]
            .into_iter()
            .chain(patterns.iter().copied())
            .collect();
        resp::encode(&command, &mut bytes);
        connection
            .get_mut()
            .write_all(&bytes)
            .await
            .map_err(failed)?;
        loop {
            resp::read(&mut connection).await.map_err(failed)?;
            heard();
        }
    }
}

fn page(answer: Option<Answer>) -> Option<(String, Vec<String>)> {
    let Answer::Many(parts) = answer? else {
        return None;
    };
    let [cursor, keys]: [Answer; 2] = parts.try_into().ok()?;
    Some((cursor.text()?, keys.texts()?))
}
