//! Chunks of an HTTP/1.1 body in their wire format.

use std::io::Write as _;
use std::ops::Range;

/// Room for the length in hexadecimal and the end of its line: a chunk is far smaller than 4 GiB.
const HEAD: usize = 10;
/// Memory that is kept for the next chunks.
const KEPT: usize = 64 * 1024;
const END: &[u8] = b"\r\n";
/// What follows the last chunk of a body.
const LAST: &[u8] = b"0\r\n\r\n";

/// A buffer for chunks, each contiguous, so that each is one write.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    bytes: Vec<u8>,
    /// Where the newest chunk begins.
    begin: usize,
}

impl Chunks {
    /// Begins a chunk; the bytes appended from now on are its content.
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.begin = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD]);
        &mut self.bytes
    }

    /// Ends the chunk and returns its range; `None` if it has no content.
    pub(crate) fn finish(&mut self) -> Option<Range<usize>> {
        let content = self.begin + HEAD;
        let mut length = self.bytes.len() - content;
        if length == 0 {
            self.bytes.truncate(self.begin);
            return None;
        }
        self.bytes.extend_from_slice(END);
        // Backwards from its end, because the number of digits is known last.
        let mut at = content - END.len();
        self.bytes[at..content].copy_from_slice(END);
        while length > 0 {
            at -= 1;
            self.bytes[at] = b"0123456789abcdef"[length & 0xf];
            length >>= 4;
        }
        Some(at..self.bytes.len())
    }

    /// Appends a chunk whose length is known; not empty, because that would end the body.
    pub(crate) fn put(&mut self, content: &[u8]) -> Range<usize> {
        let begin = self.bytes.len();
        write!(self.bytes, "{:x}\r\n", content.len()).expect("a buffer takes everything");
        self.bytes.extend_from_slice(content);
        self.bytes.extend_from_slice(END);
        begin..self.bytes.len()
    }

    /// Appends the end of a body, after a last chunk if it has content. It follows the chunk before
    /// without a gap.
    pub(crate) fn end(&mut self, last: &[u8]) -> Range<usize> {
        let begin = self.bytes.len();
        if !last.is_empty() {
            self.put(last);
        }
        self.bytes.extend_from_slice(LAST);
        begin..self.bytes.len()
    }

    /// The bytes of a chunk.
    pub(crate) fn get(&self, chunk: Range<usize>) -> &[u8] {
        &self.bytes[chunk]
    }

    /// Removes all chunks, and frees the memory of very large ones.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_says_how_long_it_is() {
        for length in [1, 9, 15, 16, 255, 256, 16 * 1024, 1 << 20] {
            let (content, mut chunks) = ("x".repeat(length), Chunks::default());
            chunks.begin().extend_from_slice(content.as_bytes());
            let (one, other) = (chunks.finish().unwrap(), chunks.put(content.as_bytes()));
            let chunk = format!("{length:x}\r\n{content}\r\n");
            assert_eq!(chunks.get(one), chunk.as_bytes());
            assert_eq!(chunks.get(other), chunk.as_bytes());
        }
    }

    #[test]
    fn a_chunk_without_content_is_none_for_it_would_end_the_body() {
        let mut chunks = Chunks::default();
        chunks.begin().extend_from_slice(b"one");
        let one = chunks.finish().unwrap();
        chunks.begin();
        assert_eq!(chunks.finish(), None);
        chunks.begin().extend_from_slice(b"three");
        let three = chunks.finish().unwrap();
        assert_eq!(chunks.get(one), b"3\r\none\r\n");
        assert_eq!(chunks.get(three), b"5\r\nthree\r\n");
    }

    #[test]
    fn the_end_follows_the_last_chunk_without_a_gap() {
        let mut chunks = Chunks::default();
        chunks.begin().extend_from_slice(b"one");
        let one = chunks.finish().unwrap();
        let end = chunks.end(b"last");
        assert_eq!(chunks.get(one.start..end.end), b"3\r\none\r\n4\r\nlast\r\n0\r\n\r\n");
        chunks.begin();
        assert_eq!(chunks.finish(), None);
        let end = chunks.end(b"");
        assert_eq!(chunks.get(end), b"0\r\n\r\n");
    }
}
