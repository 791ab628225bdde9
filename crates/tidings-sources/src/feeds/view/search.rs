//! What is searched for: words and phrases, all of which an item must have.

use crate::feeds::words::words;

/// The most words of one search; every one is looked up.
const MOST: usize = 64;

/// What is searched for: phrases of one word or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Search(Vec<Vec<String>>);

/// Why a search cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("it must have a word to search for: letters or digits")]
    Empty,
    #[error("a phrase must end with the quotation mark it begins with")]
    Open,
    #[error("it may have at most {MOST} words")]
    TooLong,
}

impl Search {
    /// Reads words and `"phrases"`. Words that are joined by something else than a space, as in
    /// `state-of-the-art`, are a phrase too.
    pub(crate) fn parse(text: &str) -> Result<Self, SearchError> {
        let mut phrases = Vec::new();
        for (index, part) in text.split('"').enumerate() {
            if index % 2 == 1 {
                phrases.push(words(part));
            } else {
                phrases.extend(part.split_whitespace().map(words));
            }
        }
        if text.matches('"').count() % 2 == 1 {
            return Err(SearchError::Open);
        }
        phrases.retain(|phrase| !phrase.is_empty());
        if phrases.is_empty() {
            return Err(SearchError::Empty);
        }
        if phrases.iter().map(Vec::len).sum::<usize>() > MOST {
            return Err(SearchError::TooLong);
        }
        Ok(Self(phrases))
    }

    /// The same as a query of the index, over the items of one feed.
    pub(crate) fn expression(&self, feed: i64) -> String {
        format!("feed : \"{feed}\" AND {}", self.everywhere())
    }

    /// The same over the items of these feeds; of all feeds if there is none.
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

    /// The words that are searched for, one by one.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }

    fn phrases(&self) -> String {
        // Words are letters and digits, so that nothing in them ends the quotation.
        let phrases: Vec<_> =
            self.0.iter().map(|phrase| format!("\"{}\"", phrase.join(" "))).collect();
        phrases.join(" AND ")
    }

    fn everywhere(&self) -> String {
        let phrases = self.phrases();
        // To look at columns takes time; the one that is left out has one number and nothing else.
        let is_number = |phrase: &Vec<String>| match phrase.as_slice() {
            [word] => word.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        };
        if self.0.iter().any(is_number) {
            format!("{{title description content}} : ({phrases})")
        } else {
            format!("({phrases})")
        }
    }

    /// Whether texts, each given as its words, have all of it.
    #[cfg(test)]
    pub(crate) fn fits(&self, texts: &[Vec<String>]) -> bool {
        self.0.iter().all(|phrase| {
            texts.iter().any(|text| text.windows(phrase.len()).any(|part| part == phrase))
        })
    }
}

fn of_feeds(feeds: &[i64]) -> String {
    let feeds: Vec<_> = feeds.iter().map(|feed| format!("\"{feed}\"")).collect();
    format!("feed : ({})", feeds.join(" OR "))
}
