use std::io::{self, Read, Write};

use crate::{PayloadEncoding, PayloadMeter, ReleaseError, ReleaseManifest};

/// Level of the compression. A release is compressed once and fetched often.
const LEVEL: i32 = 19;
/// Largest window of a compressed program, as a power of two: 128 MiB, which level 19 does not reach.
const WINDOW_LOG_MAX: u32 = 27;
/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A reason why a payload does not become its program.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It cannot be read or decompressed.
    #[error("the payload cannot be unpacked")]
    Io(#[from] io::Error),
    /// The program cannot be written.
    #[error("the program cannot be written")]
    Write(#[source] io::Error),
    /// It is not what the manifest says.
    #[error(transparent)]
    Release(#[from] ReleaseError),
}

/// The payload of a program.
///
/// # Errors
/// It cannot be compressed.
pub fn pack(program: &[u8], encoding: PayloadEncoding) -> io::Result<Vec<u8>> {
    match encoding {
        PayloadEncoding::Plain => Ok(program.to_vec()),
        PayloadEncoding::Zstd => zstd::stream::encode_all(program, LEVEL),
    }
}

/// Writes the program of a payload whose digest was compared with the manifest.
///
/// # Errors
/// See [`UnpackError`]. A part of the program may be written then.
pub fn unpack(
    manifest: &ReleaseManifest,
    payload: impl Read,
    mut program: impl Write,
) -> Result<(), UnpackError> {
    let mut payload: Box<dyn Read + '_> = match manifest.encoding {
        PayloadEncoding::Plain => Box::new(payload),
        PayloadEncoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(payload)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
    };
    let mut meter = PayloadMeter::new(manifest.program.clone());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = match payload.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let read = piece.get(..length).unwrap_or_default();
        meter.update(read)?;
        program.write_all(read).map_err(UnpackError::Write)?;
    }
    meter.finish()?;
    Ok(())
}
