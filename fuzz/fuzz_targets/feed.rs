//! Any bytes as a feed, in any encoding: it is read or refused, and what is read keeps its limits.
//!
//! The input is what the header says of the encoding, a line feed, and the document.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_feeds::parse::{Hints, parse};

fuzz_target!(|bytes: &[u8]| {
    let line = bytes.iter().position(|byte| *byte == b'\n');
    let (charset, document) =
        line.map_or((&[][..], bytes), |end| (&bytes[..end], &bytes[end + 1..]));
    let charset = String::from_utf8_lossy(charset);
    let hints = Hints {
        content_type: Some(format!("application/xml; charset={charset}")),
        base: Some("http://a.example/feed.xml".to_owned()),
    };
    for hints in [Hints::default(), hints] {
        if let Ok(document) = parse(document, &hints) {
            assert!(document.items.len() <= 20_000);
            // Problems are told once each.
            assert!(document.problems.len() <= 16);
        }
    }
});
