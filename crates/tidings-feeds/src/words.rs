//! Text search: words without case and accents.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::html::{Tag, Token, is_inline, tokens};
use crate::parse::unescaped;

/// The words of a text, in order, without case and accents.
///
/// In scripts without spaces between words, each character is a word, so that a part of a sentence
/// is found as a phrase.
pub(crate) fn words(text: &str) -> Vec<String> {
    if text.is_ascii() {
        let words = text.split(|character: char| !character.is_ascii_alphanumeric());
        return words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
    }
    spelled(text)
}

/// As [`words`], of a text of any characters.
fn spelled(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for character in folded(text) {
        if is_combining_mark(character) && !word.is_empty() {
            word.push(character);
        } else if is_a_word(character) {
            finish(&mut words, &mut word);
            word.push(character);
        } else if character.is_alphanumeric() {
            if word.starts_with(is_a_word) {
                finish(&mut words, &mut word);
            }
            word.push(character);
        } else {
            finish(&mut words, &mut word);
        }
    }
    finish(&mut words, &mut word);
    words
}

/// The words of a text that may be HTML, without the tags.
pub(crate) fn words_of_markup(text: &str) -> Vec<String> {
    words(&plain(text))
}

/// A name for comparison: without case, and with single spaces.
pub(crate) fn name(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// A category or a person for comparison: without case and spaces.
pub(crate) fn label(text: &str) -> String {
    let mut label = name(text);
    label.retain(|character| character != ' ');
    label
}

/// Invisible characters, such as soft hyphens, which a search ignores.
const NOTHING: char = '\u{ad}';

fn finish(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

fn folded(text: &str) -> impl Iterator<Item = char> + '_ {
    // Lower case may add an accent, as for the dotted İ, so accents are removed last. Letters with
    // a usual transliteration are replaced by it.
    let letters = text.nfkd().flat_map(char::to_lowercase).nfkd().filter(|it| !is_accent(*it));
    letters.flat_map(|letter| {
        let spelled = match letter {
            'ß' => ['s', 's'],
            'æ' => ['a', 'e'],
            'œ' => ['o', 'e'],
            'ø' => ['o', NOTHING],
            'ł' => ['l', NOTHING],
            'đ' => ['d', NOTHING],
            'ħ' => ['h', NOTHING],
            'ı' => ['i', NOTHING],
            'ς' => ['σ', NOTHING],
            // These prevent a line break.
            '\u{2060}' | '\u{feff}' => [NOTHING, NOTHING],
            other => [other, NOTHING],
        };
        spelled.into_iter().filter(|letter| *letter != NOTHING)
    })
}

/// The accents of Latin, Greek and Cyrillic; marks of other scripts change the word.
fn is_accent(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}')
}

/// Characters of scripts without spaces: Thai to Khmer, kana, Han.
fn is_a_word(character: char) -> bool {
    let in_script = matches!(
        character,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    );
    in_script && character.is_alphanumeric()
}

/// The text between the tags. An unfinished tag stays.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for token in tokens(text) {
        match token {
            Token::Text(words) | Token::Unended(words) => plain.push_str(&unescaped(words)),
            Token::Start(Tag { name, .. }) | Token::End(name) => {
                // Others can occur in the middle of a word.
                if !is_inline(&name) {
                    plain.push(' ');
                }
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(words(text).join(" "), expected);
    }

    proptest! {
        #[test]
        fn plain_letters_have_a_short_way_that_leads_to_the_same(text in "[\\x00-\\x7f]{0,30}") {
            prop_assert_eq!(words(&text), spelled(&text));
        }
    }

    #[test]
    fn a_text_of_beginnings_alone_is_read_once() {
        for begins in ["<a", "<!--", "<", "&"] {
            let text = begins.repeat(500_000 / begins.len());
            assert_eq!(plain(&text), text);
        }
    }

    #[test]
    fn words_have_no_case_and_no_accents() {
        check("Crème BRÛLÉE, 2 €", "creme brulee 2");
        check("İstanbul Ångström ﬁn", "istanbul angstrom fin");
        check("Ελλάδα Ёлка", "ελλαδα елка");
        check("STRASSE Straße Æther Œuvre Øl ŁÓDŹ", "strasse strasse aether oeuvre ol lodz");
        check("ΛΌΓΟΣ λόγος co\u{ad}operate", "λογοσ λογοσ cooperate");
        check("state-of-the-art C++", "state of the art c");
        check("  ", "");
    }

    #[test]
    fn scripts_without_spaces_have_a_word_for_each_character() {
        check("東京 tower東", "東 京 tower 東");
        assert_eq!(words("ガ"), words("カ\u{3099}"));
    }

    #[test]
    fn tags_are_not_looked_into() {
        let markup = "<p class=\"lead\"><B>O</B>ne<br/>two &#228;nd &amp; 3 < 4</p><!-- no -->";
        assert_eq!(words_of_markup(markup).join(" "), "one two and 3 4");
        assert_eq!(words_of_markup("a <b").join(" "), "a b");
        assert_eq!(words_of_markup("caf&eacute;&nbsp;&hellip;&#8217;x").join(" "), "cafe x");
        assert_eq!(plain("caf&eacute; R&D &lt;b&gt; &unknown;"), "café R&D <b> &unknown;");
    }

    #[test]
    fn names_differ_in_more_than_case_and_spaces() {
        assert_eq!(name(" Jane\u{a0} SMITH "), "jane smith");
        assert_ne!(name("Jane"), name("Jané"));
    }
}
