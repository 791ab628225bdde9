//! Names of feeds and items, and checksums of items.
//!
//! Names are FNV-1a, the same on every machine and in every release, because databases contain
//! them. Checksums are BLAKE3. They are stored too, but computed again when the rules in
//! [`crate::html`] change.

/// The id of a feed: the 32-bit hash of its URL.
pub(crate) fn short(url: &str) -> String {
    let mut hash = 0x811c_9dc5_u32;
    for byte in url.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    format!("{hash:08x}")
}

/// The id of a feed whose short id is taken already.
pub(crate) fn long(url: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in url.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// A name computed from several texts, long enough to be unique. Items are found again by it, so
/// the computation must never change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u128);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds a text. The separator keeps texts apart, and a missing text differs from an empty one.
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

/// A checksum of several texts, safe against deliberate collisions.
#[derive(Debug)]
pub(crate) struct Checksum(blake3::Hasher);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(blake3::Hasher::new())
    }

    /// Adds a text. The separator keeps texts apart, and a missing text differs from an empty one.
    pub(crate) fn add(&mut self, text: Option<&str>) {
        let length = text.map_or(u64::MAX, |text| text.len() as u64);
        self.0.update(&length.to_le_bytes());
        self.0.update(text.unwrap_or_default().as_bytes());
    }

    /// Half of its digits is enough.
    pub(crate) fn finish(self) -> String {
        let mut digits = self.0.finalize().to_hex().to_string();
        digits.truncate(32);
        digits
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
        let checksum = |texts: &[Option<&str>]| {
            let mut checksum = Checksum::new();
            for text in texts {
                checksum.add(*text);
            }
            checksum.finish()
        };
        for hash in [&digest as &dyn Fn(&[Option<&str>]) -> String, &checksum] {
            assert_ne!(hash(&[Some("ab"), Some("c")]), hash(&[Some("a"), Some("bc")]));
            assert_ne!(hash(&[Some("")]), hash(&[None]));
            assert_eq!(hash(&[Some("a"), None]), hash(&[Some("a"), None]));
            assert_eq!(hash(&[]).len(), 32);
        }
    }
}
