//! The status that ends a call.

use std::fmt;

use strum::IntoStaticStr;

/// Status codes, with gRPC's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[repr(u8)]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    /// Success.
    Ok = 0,
    /// The caller cancelled the call.
    Cancelled = 1,
    /// The other side sent a code that this side does not know.
    Unknown = 2,
    /// The request is invalid regardless of the state.
    InvalidArgument = 3,
    /// The deadline passed; the call may still have taken effect.
    DeadlineExceeded = 4,
    /// The object does not exist, or the caller may not see it.
    NotFound = 5,
    /// The object exists already.
    AlreadyExists = 6,
    /// The caller is known and not allowed to do this.
    PermissionDenied = 7,
    /// A bound was reached.
    ResourceExhausted = 8,
    /// The state of the object does not permit the call.
    FailedPrecondition = 9,
    /// A concurrent change won; read again and retry.
    Aborted = 10,
    /// A value is out of its valid range.
    OutOfRange = 11,
    /// The method does not exist.
    Unimplemented = 12,
    /// An invariant is broken.
    Internal = 13,
    /// There is no session, or it broke; retry.
    Unavailable = 14,
    /// Data is gone or corrupt.
    DataLoss = 15,
    /// The caller has no certificate.
    Unauthenticated = 16,
}

impl Code {
    /// The code of a number; unknown numbers are [`Code::Unknown`].
    pub fn from_u8(n: u8) -> Self {
        match n {
            0 => Self::Ok,
            1 => Self::Cancelled,
            3 => Self::InvalidArgument,
            4 => Self::DeadlineExceeded,
            5 => Self::NotFound,
            6 => Self::AlreadyExists,
            7 => Self::PermissionDenied,
            8 => Self::ResourceExhausted,
            9 => Self::FailedPrecondition,
            10 => Self::Aborted,
            11 => Self::OutOfRange,
            12 => Self::Unimplemented,
            13 => Self::Internal,
            14 => Self::Unavailable,
            15 => Self::DataLoss,
            16 => Self::Unauthenticated,
            _ => Self::Unknown,
        }
    }

    /// Short name for monitoring, as gRPC spells it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The end of a failed call: code, catalogue number, message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    code: Code,
    catalogue: Option<u16>,
    message: String,
}

impl LinkStatus {
    /// A status without a catalogue number.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            catalogue: None,
            message: message.into(),
        }
    }

    /// Adds a number of the error catalogue (`MM-<number>`). 0 means none.
    #[must_use]
    pub fn with_catalogue(mut self, number: u16) -> Self {
        self.catalogue = (number != 0).then_some(number);
        self
    }

    /// The status code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The number in the error catalogue. `None` means the error has none.
    pub fn catalogue(&self) -> Option<u16> {
        self.catalogue
    }

    /// The message for an operator.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// `true` if a retry of the same call may succeed without any other change.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.code,
            Code::Unavailable | Code::DeadlineExceeded | Code::Aborted | Code::ResourceExhausted
        )
    }
}

macro_rules! shorthand {
    ($($(#[$doc:meta])* $name:ident => $code:ident;)*) => {
        impl LinkStatus {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(Code::$code, message)
            })*
        }
    };
}

shorthand! {
    /// [`Code::Cancelled`]
    cancelled => Cancelled;
    /// [`Code::InvalidArgument`]
    invalid_argument => InvalidArgument;
    /// [`Code::DeadlineExceeded`]
    deadline_exceeded => DeadlineExceeded;
    /// [`Code::NotFound`]
    not_found => NotFound;
    /// [`Code::PermissionDenied`]
    permission_denied => PermissionDenied;
    /// [`Code::ResourceExhausted`]
    resource_exhausted => ResourceExhausted;
    /// [`Code::FailedPrecondition`]
    failed_precondition => FailedPrecondition;
    /// [`Code::Unimplemented`]
    unimplemented => Unimplemented;
    /// [`Code::Internal`]
    internal => Internal;
    /// [`Code::Unavailable`]
    unavailable => Unavailable;
    /// [`Code::Unauthenticated`]
    unauthenticated => Unauthenticated;
}

impl fmt::Display for LinkStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(n) = self.catalogue {
            write!(f, "MM-{n} ")?;
        }
        write!(f, "{} ({:?})", self.message, self.code)
    }
}

impl std::error::Error for LinkStatus {}
