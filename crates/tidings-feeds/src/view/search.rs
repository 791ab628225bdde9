//! Searches: an item must have all their words and phrases.

use crate::words::words;

/// The maximum number of words; each is looked up.
const MOST: usize = 64;

/// The minimum number of letters of a prefix: shorter ones match half of the index.
const LEAST: usize = 3;
/// The minimum number of letters of a word with other forms: `new` is not `news`.
const INFLECTED: usize = 4;

/// A search: an item must have all its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Search(Vec<Term>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    /// These words, one after the other.
    Phrase(Vec<String>),
    /// One of these words: the given one, and its other forms.
    Forms(Vec<String>),
    /// A word with this prefix.
    Beginning(String),
}

/// Why a search is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("it must have a word to search for: letters or digits")]
    Empty,
    #[error("a phrase must end with the quotation mark it begins with")]
    Open,
    #[error("it may have at most {MOST} words")]
    TooLong,
    #[error("there must be at least {LEAST} letters before `*`")]
    Short,
}

impl Search {
    /// Parses words and `"phrases"`. Words joined by something other than a space, as in
    /// `state-of-the-art`, are a phrase too. A word is found in its other forms, and `word*` is any
    /// word with that prefix.
    pub(crate) fn parse(text: &str) -> Result<Self, SearchError> {
        let mut terms = Vec::new();
        for (index, part) in text.split('"').enumerate() {
            if index % 2 == 1 {
                terms.push(Term::Phrase(words(part)));
            } else {
                for word in part.split_whitespace() {
                    terms.extend(terms_of(word)?);
                }
            }
        }
        if text.matches('"').count() % 2 == 1 {
            return Err(SearchError::Open);
        }
        terms.retain(|term| !matches!(term, Term::Phrase(words) if words.is_empty()));
        if terms.is_empty() {
            return Err(SearchError::Empty);
        }
        let count = |term: &Term| if let Term::Phrase(words) = term { words.len() } else { 1 };
        if terms.iter().map(count).sum::<usize>() > MOST {
            return Err(SearchError::TooLong);
        }
        Ok(Self(terms))
    }

    /// The same as a query of the index, over the items of one feed.
    pub(crate) fn expression(&self, feed: i64) -> String {
        format!("feed : \"{feed}\" AND {}", self.everywhere())
    }

    /// The same over the items of these feeds; without feeds, of all.
    pub(crate) fn within(&self, feeds: &[i64]) -> String {
        if feeds.is_empty() {
            return self.everywhere();
        }
        format!("{} AND {}", of_feeds(feeds), self.everywhere())
    }

    /// The same in the titles of items.
    pub(crate) fn in_titles(&self, feeds: &[i64]) -> String {
        let titles = format!("title : ({})", self.phrases());
        if feeds.is_empty() { titles } else { format!("{} AND {titles}", of_feeds(feeds)) }
    }

    /// The terms that a word is, or is part of.
    pub(crate) fn place_of(&self, word: &str) -> Option<usize> {
        self.0.iter().position(|term| match term {
            Term::Phrase(words) | Term::Forms(words) => words.iter().any(|it| it == word),
            Term::Beginning(beginning) => word.starts_with(beginning),
        })
    }

    fn phrases(&self) -> String {
        let phrases: Vec<_> = self.0.iter().map(Term::expression).collect();
        phrases.join(" AND ")
    }

    fn everywhere(&self) -> String {
        let phrases = self.phrases();
        // A filter on columns takes time; the excluded one has only one number.
        let is_digits = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = |term: &Term| match term {
            Term::Phrase(words) | Term::Forms(words) => words.len() == 1 && is_digits(&words[0]),
            Term::Beginning(word) => is_digits(word),
        };
        if self.0.iter().any(is_number) {
            format!("{{title description content}} : ({phrases})")
        } else {
            format!("({phrases})")
        }
    }

    /// Whether texts, each given as its words, match.
    #[cfg(test)]
    pub(crate) fn fits(&self, texts: &[Vec<String>]) -> bool {
        let any = |fits: &dyn Fn(&String) -> bool| texts.iter().flatten().any(fits);
        self.0.iter().all(|term| match term {
            Term::Phrase(phrase) => {
                texts.iter().any(|text| text.windows(phrase.len()).any(|part| part == phrase))
            }
            Term::Forms(forms) => any(&|word| forms.contains(word)),
            Term::Beginning(beginning) => any(&|word| word.starts_with(beginning.as_str())),
        })
    }
}

impl Term {
    /// A query of the index. Words are letters and digits, so nothing in them ends the quotation.
    fn expression(&self) -> String {
        match self {
            Self::Phrase(words) => format!("\"{}\"", words.join(" ")),
            Self::Forms(forms) => format!("(\"{}\")", forms.join("\" OR \"")),
            Self::Beginning(word) => format!("\"{word}\" *"),
        }
    }
}

/// A word of a search, without quotation marks.
fn terms_of(text: &str) -> Result<Vec<Term>, SearchError> {
    let mut parts = words(text);
    if text.ends_with('*')
        && let Some(last) = parts.pop()
    {
        // Scripts without spaces have words of one letter.
        if last.is_ascii() && last.len() < LEAST {
            return Err(SearchError::Short);
        }
        let before = (!parts.is_empty()).then_some(Term::Phrase(parts));
        return Ok(before.into_iter().chain([Term::Beginning(last)]).collect());
    }
    let term = match parts.as_slice() {
        [word] if is_inflected(word) => Term::Forms(forms(word)),
        _ => Term::Phrase(parts),
    };
    Ok(vec![term])
}

/// Whether a word may have other forms with a suffix. Other words stay unchanged, because removing
/// a suffix too often makes another word.
fn is_inflected(word: &str) -> bool {
    word.len() >= INFLECTED && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// A word and its forms in English: `learn`, `learns`, `learned`, `learning`. Each is looked up by
/// itself, which takes no longer than for one word.
fn forms(word: &str) -> Vec<String> {
    let (stem, ends): (&str, &[&str]) = if let Some(stem) = word.strip_suffix('e') {
        (stem, &["es", "ed", "ing"])
    } else if let Some(stem) = word.strip_suffix('y').filter(|stem| !ends_in_vowel(stem)) {
        (stem, &["ies", "ied", "ying"])
    } else if word.ends_with(['s', 'x', 'z']) || word.ends_with("ch") || word.ends_with("sh") {
        (word, &["es", "ed", "ing"])
    } else {
        (word, &["s", "ed", "ing"])
    };
    let forms = ends.iter().map(|end| format!("{stem}{end}"));
    std::iter::once(word.to_owned()).chain(forms).collect()
}

fn ends_in_vowel(text: &str) -> bool {
    text.ends_with(['a', 'e', 'i', 'o', 'u'])
}

fn of_feeds(feeds: &[i64]) -> String {
    let feeds: Vec<_> = feeds.iter().map(|feed| format!("\"{feed}\"")).collect();
    format!("feed : ({})", feeds.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(search: &str, text: &str, expected: bool) {
        let fits = Search::parse(search).unwrap().fits(&[words(text)]);
        assert_eq!(fits, expected, "{search}: {text}");
    }

    #[test]
    fn a_word_is_found_in_its_other_forms() {
        for form in ["learn", "Learns", "learned", "LEARNING"] {
            check("learn", form, true);
        }
        check("release", "releasing", true);
        check("query", "queries", true);
        check("patch", "patches", true);
        check("delay", "delays", true);
        // No suffix is removed, short words stay unchanged, and so does a phrase.
        check("news", "new", false);
        check("new", "news", false);
        check("\"learn\"", "learning", false);
        check("learn-by-doing", "learning by doing", false);
    }

    #[test]
    fn a_star_is_any_end() {
        check("machin*", "Machinery", true);
        check("machin*", "a machine", true);
        check("machin*", "ma chine", false);
        check("Crè*", "creme", true);
        check("state-of-the-art*", "state of the arts", true);
        assert_eq!(Search::parse("ma*"), Err(SearchError::Short));
        assert_eq!(Search::parse("*"), Err(SearchError::Empty));
    }
}
