//! Names of feeds and hashes that are kept: FNV-1a, the same on every machine and in every release.

/// The id of a feed: the 32-bit hash of its URL.
pub(crate) fn short(url: &str) -> String {
    let mut hash = 0x811c_9dc5_u32;
    for byte in url.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    format!("{hash:08x}")
}

/// The id of a feed whose short one is another's already.
pub(crate) fn long(url: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in url.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// A hash of several texts, wide enough to stand for them. It is stored, so it is none that may be
/// computed in another way one day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u128);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a text. Texts do not run into each other, and none is not an empty one.
    pub(crate) fn add(&mut self, text: Option<&str>) {
        for byte in text.unwrap_or_default().bytes() {
            self.byte(byte);
        }
        // No text has this byte.
        self.byte(if text.is_some() { 0xff } else { 0xfe });
    }

    pub(crate) fn finish(self) -> String {
        format!("{:032x}", self.0)
    }

    fn byte(&mut self, byte: u8) {
        let mixed = self.0 ^ u128::from(byte);
        self.0 = mixed.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_named_by_the_hash_of_its_url() {
        assert_eq!(short("https://example.com/feed.xml"), "b799e597");
        assert_eq!(short("https://example.com/feed22.xml"), "05c914db");
    }

    #[test]
    fn hashes_are_those_of_the_published_tables() {
        assert_eq!(short("foobar"), "bf9cf968");
        assert_eq!(long("foobar"), "85944171f73967e8");
        assert_eq!(Digest::new().finish(), "6c62272e07bb014262b821756295c58d");
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let digest = |texts: &[Option<&str>]| {
            let mut digest = Digest::new();
            for text in texts {
                digest.add(*text);
            }
            digest.finish()
        };
        assert_ne!(digest(&[Some("ab"), Some("c")]), digest(&[Some("a"), Some("bc")]));
        assert_ne!(digest(&[Some("")]), digest(&[None]));
    }
}
