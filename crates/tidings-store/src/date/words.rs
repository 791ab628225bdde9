//! Words in dates: months in the languages of feeds, days and zones.

use super::clock::Half;

/// How the names of months begin, in lower case. English, German, French, Spanish, Italian,
/// Portuguese, Dutch, Polish, Russian, Swedish, Danish, Norwegian, Greek and Hungarian; two of
/// the Hungarian and Greek ones are misspelt, as feeds are known to misspell them.
const MONTHS: [&[&str]; 12] = [
    &["jan", "jän", "ene", "gen", "sty", "янв", "ιαν"],
    &["feb", "fév", "fev", "lut", "фев", "φεβ"],
    &["mar", "mär", "mrz", "maerz", "mrt", "maart", "már", "мар", "μαρ", "μάρ", "μαώ", "μάώ"],
    &["apr", "abr", "avr", "ápr", "kwi", "апр", "απρ"],
    &["may", "mai", "maj", "mei", "mag", "máj", "máu", "май", "мая", "μαι", "μάι", "μαϊ", "μαΐ"],
    &["jun", "juin", "giu", "jún", "cze", "июн", "ιουν", "ιούν", "ιον"],
    &["jul", "juil", "lug", "júl", "lip", "июл", "ιουλ", "ιούλ", "ιολ"],
    &["aug", "aoû", "aou", "ago", "sie", "авг", "αυγ", "αύγ"],
    &["sep", "set", "szept", "wrz", "сен", "σεπ"],
    &["oct", "okt", "ott", "out", "paź", "paz", "окт", "οκτ"],
    &["nov", "lis", "ноя", "νοε", "νοέ"],
    &["dec", "dez", "dic", "déc", "gru", "дек", "δεκ"],
];

/// Words between the parts of a date that carry no meaning.
const FILLERS: &[&str] = &[
    "de", "del", "of", "at", "the", "on", "um", "uhr", "am:", "à", "a", "las", "den", "kl", "г",
    "года", "r", "el", "le", "il", "alle", "ore", "às", "om",
];

const WEEKDAYS: &[&str] = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Zones with their minutes east of UTC. An ambiguous name has the meaning of RFC 822, or else the
/// most frequent one in feeds.
const ZONES: &[(&str, i64)] = &[
    ("ut", 0),
    ("utc", 0),
    ("gmt", 0),
    ("z", 0),
    ("wet", 0),
    ("zulu", 0),
    ("est", -300),
    ("edt", -240),
    ("et", -300),
    ("cst", -360),
    ("cdt", -300),
    ("ct", -360),
    ("mst", -420),
    ("mdt", -360),
    ("mt", -420),
    ("pst", -480),
    ("pdt", -420),
    ("pt", -480),
    ("ast", -240),
    ("adt", -180),
    ("at", -240),
    ("nst", -210),
    ("ndt", -150),
    ("akst", -540),
    ("akdt", -480),
    ("hst", -600),
    ("hast", -600),
    ("hadt", -540),
    ("sst", -660),
    ("bst", 60),
    ("west", 60),
    ("cet", 60),
    ("mez", 60),
    ("met", 60),
    ("cest", 120),
    ("mesz", 120),
    ("mest", 120),
    ("eet", 120),
    ("eest", 180),
    ("msk", 180),
    ("msd", 240),
    ("sast", 120),
    ("cat", 120),
    ("wat", 60),
    ("eat", 180),
    ("trt", 180),
    ("gst", 240),
    ("pkt", 300),
    ("ist", 330),
    ("npt", 345),
    ("bdt", 360),
    ("ict", 420),
    ("wib", 420),
    ("wita", 480),
    ("wit", 540),
    ("sgt", 480),
    ("hkt", 480),
    ("myt", 480),
    ("pht", 480),
    ("awst", 480),
    ("jst", 540),
    ("kst", 540),
    ("acst", 570),
    ("acdt", 630),
    ("aest", 600),
    ("aedt", 660),
    ("aet", 600),
    ("nzst", 720),
    ("nzdt", 780),
    ("brt", -180),
    ("brst", -120),
    ("art", -180),
    ("clt", -240),
    ("clst", -180),
    ("uyt", -180),
    ("cot", -300),
    ("pet", -300),
    ("ist+5:30", 330),
    ("yekt", 300),
    ("omst", 360),
    ("krat", 420),
    ("irkt", 480),
    ("vlat", 600),
];

/// The month a word begins like.
pub(super) fn month(word: &str) -> Option<i64> {
    let of_word = |names: &&[&str]| names.iter().any(|name| word.starts_with(name));
    (1..).zip(&MONTHS).find(|(_, names)| of_word(names)).map(|(month, _)| month)
}

pub(super) fn is_weekday(word: &str) -> bool {
    WEEKDAYS.iter().any(|name| word.starts_with(name))
}

pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.contains(&word)
}

/// Seconds east of UTC of a zone's name in lower case.
pub(super) fn zone(name: &str) -> Option<i64> {
    if let Some((_, minutes)) = ZONES.iter().find(|(zone, _)| *zone == name) {
        return Some(minutes * 60);
    }
    // The letters of RFC 822, with the signs it gives them.
    let &[letter] = name.as_bytes() else { return None };
    let hours = match letter {
        b'a'..=b'i' => -i64::from(letter - b'a' + 1),
        b'k'..=b'm' => -i64::from(letter - b'a'),
        b'n'..=b'y' => i64::from(letter - b'n' + 1),
        _ => return None,
    };
    Some(hours * 3600)
}

/// Morning or afternoon, in English, Korean, Japanese and Chinese.
pub(super) fn half(word: &str) -> Option<Half> {
    match word {
        "am" | "a.m." | "a.m" | "오전" | "午前" | "上午" => Some(Half::Morning),
        "pm" | "p.m." | "p.m" | "오후" | "午後" | "下午" => Some(Half::Afternoon),
        _ => None,
    }
}
