//! Feeds with texts in which some words are frequent and most are rare, the same in every run.

use std::fmt::Write as _;

/// A word that is in every item.
pub(crate) const EVERYWHERE: &str = "daily";
/// How many different words there are.
const WORDS: u64 = 20_000;
const SYLLABLES: [&str; 16] = [
    "ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu", "za",
];

/// The same random numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    /// A word; the lower its number, the more often it comes.
    pub(crate) fn word(&mut self) -> String {
        let (one, two) = (self.below(WORDS), self.below(WORDS));
        word(one * two / WORDS)
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<_> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }
}

/// The word of this number.
pub(crate) fn word(mut number: u64) -> String {
    let mut text = String::new();
    for _ in 0..4 {
        text.push_str(SYLLABLES[usize::try_from(number % 16).unwrap_or_default()]);
        number /= 16;
    }
    text
}

/// A document of so many items, a minute apart, the newest first.
pub(crate) fn document(title: &str, items: usize, seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\" \
         xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><channel><title>{title}</title>\
         <link>http://a.example/</link><description>Some news</description>\n"
    );
    for number in (0..items).rev() {
        let (day, hour, minute) = (1 + number / 1440 % 28, number / 60 % 24, number % 60);
        let _ = writeln!(
            text,
            "<item><title>{}</title><link>http://a.example/{seed}/{number}</link>\
             <guid isPermaLink=\"false\">urn:{seed}:{number}</guid>\
             <dc:creator>Author {}</dc:creator><category>{}</category><category>news</category>\
             <pubDate>{day:02} Jan 2024 {hour:02}:{minute:02}:00 GMT</pubDate>\
             <description>{EVERYWHERE} {}</description>\
             <content:encoded><![CDATA[<p>{}</p><p><a href=\"/x\">{}</a></p>]]></content:encoded>\
             </item>",
            random.words(6),
            random.below(20),
            random.word(),
            random.words(15),
            random.words(40),
            random.words(10),
        );
    }
    text + "</channel></rss>\n"
}
