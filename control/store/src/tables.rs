//! The control plane's own state, [`Tables`], as the store's state machine.

use control_authz::{AuditedCall, Permit};
use control_state::{
    AuditEntry, AuditPhase, Change, Command, ErrorCode, FEATURE_LEVEL, Kind, Op, Record, Reply,
    StateError, Tables,
};
use proto_types::Timestamp;
use serde::Deserialize;

use crate::codec::{self, StoreCodecError};
use crate::machine::{ApplyOutcome, StateMachine, StateRow};
use crate::operations::{check_covers, check_covers_members};

/// Version byte of a row. It is followed by the revision of the row's last change, eight bytes
/// with the highest first, and the record's CBOR. Rows of any other version are refused.
const ROW_VERSION: u8 = 2;

/// The key of an object's row.
pub(crate) fn row_key(kind: Kind, key: &str) -> Vec<u8> {
    format!("{kind}/{key}").into_bytes()
}

/// An object's row, with the revision of the command that last changed it.
pub(crate) fn row_value(record: &Record, revision: u64) -> Result<Vec<u8>, StoreCodecError> {
    let mut value = vec![ROW_VERSION];
    value.extend(revision.to_be_bytes());
    let record = record
        .encode()
        .map_err(|e| StoreCodecError::Encode(e.to_string()))?;
    value.extend(record);
    Ok(value)
}

/// The part of a command that is the same at every feature level.
#[derive(Deserialize)]
struct CommandLevel {
    version: u32,
}

/// The audit record of a call, without its end.
pub(crate) fn entry(call: &AuditedCall) -> AuditEntry {
    AuditEntry {
        sequence: 0,
        id: call.id.clone(),
        time: Timestamp::from_ms(call.time_ms),
        ended: None,
        user: call.user.clone(),
        tenant: call.tenant.clone(),
        project: call.project.clone(),
        method: call.method.clone(),
        body: call.body.clone(),
        source_ip: call.source_ip.clone(),
        result_code: None,
        phase: AuditPhase::Call,
        rule: call.rule.clone(),
        count: None,
        hash: None,
    }
}

impl StateMachine for Tables {
    type Command = Command;
    type Reply = Reply;
    type Rejection = StateError;
    type Change = Change;
    type Permit = Permit;

    fn apply(&mut self, command: &Command) -> ApplyOutcome<Self> {
        let control_state::Outcome {
            result,
            changes,
            revision: _,
        } = control_state::apply(self, command);
        ApplyOutcome { result, changes }
    }

    fn read(bytes: &[u8]) -> Result<Command, StoreCodecError> {
        let command: Result<Command, _> = codec::decode(bytes);
        let level = match &command {
            Ok(command) => command.version,
            // A newer command may have fields or an operation that this program cannot decode, but
            // its level can always be read. The operator is then told to start the newer program,
            // and not that the log is damaged.
            Err(_) => codec::decode(bytes).map_or(0, |command: CommandLevel| command.version),
        };
        let max = FEATURE_LEVEL;
        if level > max {
            return Err(StoreCodecError::Newer { got: level, max });
        }
        command
    }

    fn enabled(&self, command: &Command) -> Result<(), StateError> {
        control_state::check_enabled(self, command)
    }

    /// A trial (dry run) may change nothing, in whichever part of the code it arrives. A call may
    /// change only what its method covers.
    fn may_change(permit: &Permit, command: &Command) -> Result<(), StateError> {
        if permit.is_trial() {
            let what = "it does more than one change of the state";
            return Err(StateError::new(ErrorCode::CannotBeTried, what));
        }
        check_covers(permit, &command.op)
    }

    fn may_change_members(permit: &Permit) -> bool {
        !permit.is_trial() && check_covers_members(permit).is_ok()
    }

    /// The first change of a call carries the audit record of the call.
    fn recorded(&self, permit: &Permit, command: &Command) -> Option<Command> {
        let call = permit.call().filter(|call| !call.recorded.get())?;
        Some(command.clone().called(entry(call)))
    }

    fn was_recorded(permit: &Permit) {
        if let Some(call) = permit.call() {
            call.recorded.set();
        }
    }

    /// A request with an idempotency key is stored with its answer, so a second try gets that
    /// answer.
    fn is_repeatable(command: &Command) -> bool {
        matches!(&command.op, Op::AllocateMachine(op) if op.idempotency.is_some())
    }

    fn revision(&self) -> u64 {
        Self::revision(self)
    }

    fn set_revision(&mut self, revision: u64) {
        Self::set_revision(self, revision);
    }

    /// The key is `kind/key`; the value a version byte, the revision and the record's CBOR.
    fn row(&self, change: &Change) -> Result<StateRow, StoreCodecError> {
        let key = row_key(change.kind, &change.key);
        let value = change.record.as_ref();
        let value = value.map(|record| row_value(record, change.revision));
        Ok(StateRow {
            key,
            value: value.transpose()?,
        })
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreCodecError> {
        let unreadable = |reason: String| StoreCodecError::Decode(reason);
        let (version, rest) = value.split_first().ok_or(StoreCodecError::Empty)?;
        if *version != ROW_VERSION {
            return Err(StoreCodecError::Version {
                got: *version,
                known: ROW_VERSION,
            });
        }
        let (revision, record) = rest
            .split_first_chunk()
            .ok_or_else(|| unreadable("it ends within its revision".to_owned()))?;
        let revision = u64::from_be_bytes(*revision);
        // The kind alone: the rest of the key may have slashes of its own, and the record has the
        // key anyway.
        let kind = key.split(|b| *b == b'/').next().unwrap_or_default();
        let kind: Kind = String::from_utf8_lossy(kind)
            .parse()
            .map_err(|e: StateError| unreadable(e.to_string()))?;
        Self::load(self, kind, record, revision).map_err(|e| unreadable(e.to_string()))
    }
}
