//! Pages of a list. A changed list invalidates its cursors, so there are no silent gaps.

use tidings_core::Fingerprint;

use crate::catalog::{Listing, Stored};

/// One page.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) items: &'a [Stored],
    pub(crate) next: Option<String>,
}

/// Why a cursor was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CursorError {
    /// It is not ours.
    #[error("this is not a cursor of this list; list again without one")]
    Invented,
    /// The list changed since the cursor was issued.
    #[error("the list changed since this cursor was given; list again without one")]
    Changed,
}

impl Listing {
    /// The page of a cursor, or the first.
    pub(crate) fn page(&self, cursor: Option<&str>, size: usize) -> Result<Page<'_>, CursorError> {
        let start = match cursor {
            Some(cursor) => self.start(cursor)?,
            None => 0,
        };
        let end = self.items.len().min(start.saturating_add(size.max(1)));
        let next = (end < self.items.len()).then(|| write(self.fingerprint, end));
        Ok(Page { items: &self.items[start..end], next })
    }

    fn start(&self, cursor: &str) -> Result<usize, CursorError> {
        let (name, start) = cursor.split_once('-').ok_or(CursorError::Invented)?;
        let well_formed =
            name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let start: usize = start.parse().map_err(|_| CursorError::Invented)?;
        if !well_formed || write(self.fingerprint, start).len() != cursor.len() {
            return Err(CursorError::Invented);
        }
        if name != self.fingerprint.to_string() {
            return Err(CursorError::Changed);
        }
        if start == 0 || start >= self.items.len() {
            return Err(CursorError::Invented);
        }
        Ok(start)
    }
}

fn write(fingerprint: Fingerprint, start: usize) -> String {
    format!("{fingerprint}-{start}")
}
