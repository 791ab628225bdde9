//! Any text as a date: it is one or none, and what it is, is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_store::date::Moment;

fuzz_target!(|text: &str| {
    if let Some(moment) = Moment::parse(text) {
        assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
        assert_eq!(Moment::from_unix(moment.unix()), Some(moment));
    }
});
