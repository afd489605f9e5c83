//! `metalmeshd restore`: creates a data directory from a backup. The directory is built under another
//! name and renamed last, so it is complete or does not exist.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use control_pki::SealingKey;
use control_state::{CaRecord, FEATURE_LEVEL};
use control_store::{StateRestore as Target, Store, StoreConfig};
use proto_backup::{BackupError, Encryption, Head, Identities, Item, Reader};
use proto_types::Timestamp;

use crate::data_dir::{DATA_KEY, SEALING_KEY};
use crate::files;
use crate::guarded_dir::{self, FileOwner, GuardedDir};

/// Maximum size of a key file, bytes. The rest is not read, so a larger file is not a valid key.
const KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// Flags of `metalmeshd restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup, from `metalmesh cluster backup` or a scheduled one.
    file: PathBuf,
    /// The data directory to create; must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// The key file that opens the backup [default: FILE.key].
    #[arg(long, value_name = "KEYFILE")]
    identity: Option<PathBuf>,
    /// For a plain backup: a directory with copies of a node's seal.key and data.key.
    #[arg(long, value_name = "DIR")]
    keys_of: Option<PathBuf>,
    /// The file that mesh.sealing_key of the configuration names, if it does
    /// [default: seal.key in the data directory].
    #[arg(long, value_name = "FILE")]
    sealing_key: Option<PathBuf>,
    /// Name of the new cluster [default: as in the backup].
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Number of its only node.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    node_id: u64,
}

pub(crate) async fn run(restore: &RestoreArgs) -> Result<()> {
    let dir = &restore.data_dir;
    check_free(dir)?;
    // The package makes an empty one for the user of the service.
    let owner = guarded_dir::owner_of(dir)?;
    guarded_dir::check(dir, owner)?;
    let keys = restore.keys()?;
    // The whole backup is read once before anything is written: a damaged one is refused without
    // leaving a partial directory.
    let (head, data_key) = restore.prove(keys.as_ref())?;
    let data_key = restore.data_key(&head, data_key)?;
    let building = beside(dir)?;
    let built = restore
        .build(&building, &head, keys.as_ref(), &data_key)
        .await;
    if let Err(error) = built.and_then(|()| name(&building, dir)) {
        if let Err(error) = fs::remove_dir_all(&building) {
            eprintln!("warning: cannot remove {}: {error}", building.display());
        }
        return Err(error);
    }
    restore.give_away(owner)?;
    println!(
        "restored:  {} (cluster {:?}, node {}, everything up to revision {})",
        dir.display(),
        restore.cluster(&head),
        restore.node_id,
        head.revision
    );
    eprintln!(
        "hint:  it is a new cluster of this one node; nodes of the old one cannot join it with \
         their data. Stop them for good, start this node with the configuration that they had \
         (data_dir, cluster and node_id as above, the same trust_domain), and join new nodes. \
         It judges no machine until you compare what it knows with what is there: \
         metalmesh cluster reconcile-after-restore --dry-run"
    );
    Ok(())
}

impl RestoreArgs {
    fn cluster(&self, head: &Head) -> String {
        self.cluster.clone().unwrap_or_else(|| head.cluster.clone())
    }

    /// The beginning of error messages.
    fn named(&self) -> String {
        format!("cannot restore {}", self.file.display())
    }

    /// The keys of the key file. `None` means a plain backup, which needs none.
    fn keys(&self) -> Result<Option<Identities>> {
        let head = Head::read(&mut self.open()?).with_context(|| self.named())?;
        ensure!(
            head.feature_level <= FEATURE_LEVEL,
            "{}: it is of a cluster at feature level {}, this program knows up to {FEATURE_LEVEL}: \
             restore it with metalmeshd {} or newer",
            self.named(),
            head.feature_level,
            head.made_by
        );
        if head.encryption == Encryption::None {
            return Ok(None);
        }
        let mut beside = self.file.as_os_str().to_owned();
        beside.push(".key");
        let path = match &self.identity {
            Some(path) => path.clone(),
            None => PathBuf::from(beside),
        };
        if self.identity.is_none() && !path.exists() {
            return Err(BackupError::NeedsKey).with_context(|| self.named());
        }
        let text = read_small(&path)?;
        let text = String::from_utf8(text).map_err(|_| BackupError::Identity);
        let keys = text.and_then(|text| Identities::parse(&text));
        keys.map(Some)
            .with_context(|| format!("cannot use {}", path.display()))
    }

    /// Gives the finished directory, and a sealing key outside, to the user of the empty one.
    fn give_away(&self, owner: Option<FileOwner>) -> Result<()> {
        if let Some(guarded) = GuardedDir::take(&self.data_dir, owner)? {
            guarded.give()?;
        }
        match (owner, &self.sealing_key) {
            (Some(owner), Some(key)) => guarded_dir::give_file(key, owner).context("--sealing-key"),
            _ => Ok(()),
        }
    }

    fn open(&self) -> Result<BufReader<File>> {
        let file = File::open(&self.file);
        let file = file.with_context(|| format!("cannot read {}", self.file.display()))?;
        Ok(BufReader::new(file))
    }

    /// Reads the whole backup. Returns its head and its data key, which plain backups lack.
    fn prove(&self, keys: Option<&Identities>) -> Result<(Head, Option<Vec<u8>>)> {
        let mut reader = Reader::open(self.open()?, keys).with_context(|| self.named())?;
        let mut data_key = None;
        while let Some(item) = reader.item().with_context(|| self.named())? {
            if let Item::DataKey(key) = item {
                data_key = Some(key);
            }
        }
        Ok((reader.head().clone(), data_key))
    }

    /// The key that unseals the private keys in the state.
    fn data_key(&self, head: &Head, in_backup: Option<Vec<u8>>) -> Result<SealingKey> {
        match (in_backup, &self.keys_of) {
            (Some(key), None) => SealingKey::from_secret(&key)
                .with_context(|| format!("{}: its data key cannot be used", self.named())),
            (None, Some(dir)) => kept_data_key(dir)
                .with_context(|| format!("--keys-of: cannot use {}", dir.display())),
            (Some(_), Some(_)) => {
                bail!("--keys-of: the backup has its own key; leave the flag out")
            }
            (None, None) => bail!(
                "{} is a plain backup of cluster {:?}: it has no key that unseals the private \
                 keys in it. Name a directory with copies of a node's seal.key and data.key: \
                 --keys-of DIR",
                self.file.display(),
                head.cluster
            ),
        }
    }

    /// The new node's sealing key, created unless it exists.
    fn node_key(&self, dir: &Path) -> Result<SealingKey> {
        let path = self.sealing_key.clone();
        let path = path.unwrap_or_else(|| dir.join(SEALING_KEY));
        SealingKey::load(&path, true)
            .with_context(|| format!("--sealing-key: cannot use {}", path.display()))
    }

    /// Builds the directory under another name and checks that the store starts from it.
    async fn build(
        &self,
        dir: &Path,
        head: &Head,
        keys: Option<&Identities>,
        data_key: &SealingKey,
    ) -> Result<()> {
        let mut reader = Reader::open(self.open()?, keys).with_context(|| self.named())?;
        let rows = std::iter::from_fn(|| {
            loop {
                match reader.item() {
                    Ok(Some(Item::Row { key, value })) => return Some(Ok((key, value))),
                    Ok(Some(Item::DataKey(_))) => {}
                    Ok(None) => return None,
                    Err(error) => return Some(Err(error)),
                }
            }
        });
        let target = Target {
            dir: dir.to_owned(),
            cluster: self.cluster(head),
            node_id: self.node_id,
            term: head.term,
            revision: head.revision,
            made_at: Some(Timestamp::from_ms(head.made_at_ms)),
        };
        target.run(rows).await.with_context(|| self.named())?;
        self.start(dir, head, data_key).await?;
        // Last, because a key file outside the directory would stay behind after a failure.
        self.node_key(dir)?
            .keep_data_key(&dir.join(DATA_KEY), data_key)
            .context("the key that unseals cannot be kept")
    }

    /// Starts the restored state once, and checks the keys.
    async fn start(&self, dir: &Path, head: &Head, data_key: &SealingKey) -> Result<()> {
        let config = StoreConfig::new(dir, self.node_id, self.cluster(head));
        let store = Store::open(config)
            .await
            .context("the restored state does not start")?;
        let unsealed = unseals(&store, data_key).await;
        store.shutdown().await;
        unsealed
    }
}

/// Checks that the data key belongs to this state.
async fn unseals(store: &Store, data_key: &SealingKey) -> Result<()> {
    let authorities: Vec<_> = store
        .read(|tables| tables.all::<CaRecord>().cloned().collect())
        .await?;
    for authority in authorities {
        data_key
            .open(&authority.id, &authority.sealed_key)
            .context("the keys are not those of this backup; name the right ones")?;
    }
    Ok(())
}

/// The data key in a node's directory.
fn kept_data_key(dir: &Path) -> Result<SealingKey> {
    let (seal, data) = (dir.join(SEALING_KEY), dir.join(DATA_KEY));
    // Not `SealingKey::load`, which refuses a file that others may read: this is a copy, and it is
    // not kept.
    ensure!(seal.exists(), "there is no {SEALING_KEY} in it");
    let bytes = read_small(&seal)?;
    let node_key = SealingKey::from_secret(&bytes).context("its seal.key is none")?;
    ensure!(data.exists(), "there is no {DATA_KEY} in it");
    Ok(node_key.data_key(&data, false)?)
}

/// Checks that the directory does not exist or is empty.
fn check_free(dir: &Path) -> Result<()> {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("--data-dir: cannot read {}", dir.display()));
        }
    };
    ensure!(
        entries.next().is_none(),
        "--data-dir: {} is in use; name a directory that does not exist, or move that one away",
        dir.display()
    );
    Ok(())
}

/// A name in the same parent directory, so that the last step is an atomic rename.
fn beside(dir: &Path) -> Result<PathBuf> {
    let name = dir
        .file_name()
        .context("--data-dir: has no name; give a path like /var/lib/metalmesh/control")?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    files::make_open_dirs(parent)
        .with_context(|| format!("--data-dir: cannot make {}", parent.display()))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".restoring-{}", std::process::id()));
    Ok(parent.join(hidden))
}

/// Renames the finished directory.
fn name(building: &Path, dir: &Path) -> Result<()> {
    let named = || format!("cannot name {}", dir.display());
    fs::rename(building, dir).with_context(named)?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or_else(|| Path::new(".")))
        .and_then(|parent| parent.sync_all())
        .with_context(named)
}

/// Reads a key file.
fn read_small(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read;
    let named = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(named)?;
    file.take(KEY_FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .with_context(named)?;
    Ok(bytes)
}
