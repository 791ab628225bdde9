//! The attributes of one element.

use std::borrow::Cow;

use quick_xml::events::attributes::Attributes as Pairs;

use super::Problem;
use super::entity::Entities;
use super::problem::Problems;

/// How many attributes of one element are read.
const MOST: usize = 256;

/// The attributes of one element, with references resolved.
#[derive(Debug, Default)]
pub(super) struct Attributes<'a> {
    list: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Attributes<'a> {
    /// Reads the attributes of a tag, given the text between its angle brackets and the length of
    /// its name. Of a repeated name the first counts.
    pub(super) fn new(
        tag: &'a str,
        name: usize,
        entities: &mut Entities,
        problems: &mut Problems,
    ) -> Self {
        let mut list = Vec::new();
        for attribute in Pairs::html(tag, name).with_checks(false).flatten() {
            if list.len() == MOST {
                problems.add(Problem::TooManyAttributes);
                break;
            }
            let value = match attribute.value {
                Cow::Borrowed(value) => entities.unescape(value),
                Cow::Owned(value) => Cow::Owned(entities.unescape(&value).into_owned()),
            };
            list.push((attribute.key.into_inner(), value));
        }
        Self { list }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &str)> {
        self.list.iter().map(|(name, value)| (*name, value.as_ref()))
    }

    /// A value by its name, ignoring case.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// A value that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// The first of several values, by the local part of its name, that is not empty.
    pub(super) fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| {
            let local = |key: &'a str| key.rsplit(':').next().unwrap_or(key);
            let value = self.iter().find(|(key, _)| local(key).eq_ignore_ascii_case(name));
            value.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
        })
    }

    pub(super) fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.trim().parse().ok()
    }
}
