//! What an outbox tells, and when.

use tidings_core::Fingerprint;

use super::*;

// What a subscriber found to begin with was marked before it became its baseline; a reader that
// was quick enough took it as news.
#[test]
fn nothing_is_told_before_the_baseline() {
    let wire = Wire::Legacy { titled: false, numbered: false };
    let outbox = Outbox::new(1, wire, About::nobody(), Duration::ZERO, Arc::new(Metrics::new()));
    let (uri, pulse) = (ResourceUri::parse("p://a").unwrap(), Pulse::default());
    let notice = Arc::new(Notice::updated(&uri, None));
    let check = |text: &[u8]| Check { at: pulse.count(), fingerprint: Fingerprint::of_bytes(text) };
    let mark = |text: &[u8]| {
        let (check, audience) = (check(text), &Labels::NONE);
        let seen = Seen { check, audience, notice: &notice, gone: &notice };
        outbox.mark(&uri, &seen, Instant::now());
    };
    let reader = outbox.attach();
    let poll = || outbox.poll_next(reader, &mut Context::from_waker(Waker::noop()));
    outbox.follow(&uri, &pulse);
    mark(b"first");
    assert_eq!(poll(), Poll::Pending);
    outbox.baseline(&uri, check(b"first"), &Labels::NONE);
    assert_eq!(poll(), Poll::Pending);
    mark(b"second");
    assert!(matches!(poll(), Poll::Ready(Next::Frames(_))));
}
