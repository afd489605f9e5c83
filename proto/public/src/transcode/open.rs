//! The list or map that is being written.

/// A list or map whose next item may follow.
#[derive(Debug)]
pub(super) enum Open {
    None,
    List,
    /// With the ranges of the keys in the output.
    Map(Vec<(usize, usize)>),
}

/// Writes the closing bracket, if there is one to write.
pub(super) fn close(open: &mut Open, out: &mut Vec<u8>) {
    match std::mem::replace(open, Open::None) {
        Open::None => {}
        Open::List => out.push(b']'),
        Open::Map(_) => out.push(b'}'),
    }
}
