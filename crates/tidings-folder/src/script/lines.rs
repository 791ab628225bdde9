//! Splitting standard error into signs and text, within bounded memory.

use super::sign::Sign;

/// The longest line that can be a sign.
const LINE: usize = 64 << 10;
/// How much of the end of the text is kept.
const KEPT: usize = 4 << 10;

/// The parser of standard error.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The unfinished last line. Invariant: no longer than [`LINE`].
    partial: Vec<u8>,
    /// Whether the current line is too long to be a sign; the rest of it is text too.
    overlong: bool,
    /// The end of the text, at most twice as long as [`KEPT`].
    tail: Vec<u8>,
}

impl Lines {
    /// Adds bytes, and passes on the complete signs among them.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(Sign)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end + 1);
            self.piece(line);
            self.end_line(&mut found);
            bytes = rest;
        }
        self.piece(bytes);
    }

    /// Ends the last line, and returns the end of the text.
    pub(super) fn finish(mut self, found: impl FnMut(Sign)) -> String {
        self.end_line(found);
        let text = String::from_utf8_lossy(&self.tail);
        let start = text.ceil_char_boundary(text.len().saturating_sub(KEPT));
        text[start..].trim_end().to_owned()
    }

    fn piece(&mut self, bytes: &[u8]) {
        if !self.overlong && self.partial.len() + bytes.len() <= LINE {
            self.partial.extend_from_slice(bytes);
            return;
        }
        self.overlong = true;
        let partial = std::mem::take(&mut self.partial);
        self.keep(&partial);
        self.keep(bytes);
    }

    fn end_line(&mut self, mut found: impl FnMut(Sign)) {
        if std::mem::take(&mut self.overlong) {
            return;
        }
        let line = std::mem::take(&mut self.partial);
        let sign = std::str::from_utf8(&line)
            .ok()
            .and_then(|line| Sign::parse(line.trim_end_matches(['\n', '\r'])));
        match sign {
            Some(sign) => found(sign),
            None => self.keep(&line),
        }
        // The buffer is reused, so that many lines need few allocations.
        self.partial = line;
        self.partial.clear();
    }

    fn keep(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        if self.tail.len() + bytes.len() > 2 * KEPT {
            // Not for every line: moving the end to the front costs as much as its length.
            let surplus = self.tail.len().saturating_sub(KEPT);
            self.tail.drain(..surplus);
        }
        self.tail.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> (Vec<Sign>, String) {
        let (mut lines, mut signs) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.feed(piece, |sign| signs.push(sign));
        }
        let rest = lines.finish(|sign| signs.push(sign));
        (signs, rest)
    }

    fn progress(done: f64) -> Sign {
        Sign::Progress { done, total: None, message: None }
    }

    #[test]
    fn signs_are_taken_out_and_the_rest_is_kept() {
        let (signs, rest) = read(&[b"one\n::progress 1\ntwo\r\n::progress x\n"]);
        assert_eq!(signs, [progress(1.0)]);
        assert_eq!(rest, "one\ntwo\r\n::progress x");
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(read(&[b"a\n::progress 2"]), (vec![progress(2.0)], "a".to_owned()));
    }

    #[test]
    fn bytes_that_are_no_text_are_tolerated() {
        let (signs, rest) = read(&[b"\xff\xfe\n::progress 1\n\xc3"]);
        assert_eq!(signs, [progress(1.0)]);
        assert_eq!(rest, "\u{fffd}\u{fffd}\n\u{fffd}");
    }

    #[test]
    fn an_overlong_line_is_text_and_the_next_may_be_a_sign() {
        let long = [b"::log info ".as_slice(), &vec![b'x'; 2 * LINE]].concat();
        let (signs, rest) = read(&[&long, b"end\n::progress 1\n"]);
        assert_eq!(signs, [progress(1.0)]);
        assert!(rest.len() <= KEPT);
        assert!(rest.ends_with("xend"), "{rest}");
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_cut_the_result_is_the_same(
            text in proptest::collection::vec("(::progress [0-9]|[a-z\u{e9}]{0,9}|\u{ff})\n?", 0..20),
            cuts in proptest::collection::vec(1_usize..9, 1..9),
        ) {
            let text = text.concat().into_bytes();
            let (mut pieces, mut rest) = (Vec::new(), text.as_slice());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(read(&pieces), read(&[&text]));
        }

        #[test]
        fn what_is_kept_is_bounded(lengths in proptest::collection::vec(0_usize..9000, 0..20)) {
            let (mut lines, mut all) = (Lines::default(), Vec::new());
            for (index, length) in lengths.into_iter().enumerate() {
                let byte = b'a' + u8::try_from(index).unwrap();
                let line = [vec![byte; length], b"\n".to_vec()].concat();
                lines.feed(&line, |_| {});
                all.extend(line);
                prop_assert!(lines.tail.len() <= 2 * KEPT);
            }
            let text = String::from_utf8(all).unwrap();
            let end = text[text.len().saturating_sub(KEPT)..].trim_end().to_owned();
            prop_assert_eq!(lines.finish(|_| {}), end);
        }
    }
}
