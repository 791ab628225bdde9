//! Odd parts: items of lists and blocks of results that are not as the protocol says.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An item of a list, or a block of a result, that is not as the protocol says.
///
/// It costs nobody else their place: the items beside it are listed, and a call that ran has its
/// result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Odd {
    /// Its place among the items or blocks that the server sent, from 0.
    pub index: usize,
    /// What it calls itself: its name, URI or type.
    pub name: Option<String>,
    /// What is wrong with it, and what was done about it.
    pub reason: String,
    /// Whether it is used all the same, without the part that is wrong or with what is missing
    /// filled in. If not, it is here alone.
    pub usable: bool,
    /// It, as the server sent it.
    pub item: Value,
}

impl Odd {
    /// One that could not be used, at this place, for this reason. Its name is in the item.
    pub fn new(index: usize, reason: impl Into<String>, item: Value) -> Self {
        let names = ["name", "uri", "uriTemplate", "type", "role"];
        let name = names.iter().find_map(|key| item.get(key)?.as_str()).map(str::to_owned);
        Self { index, name, reason: reason.into(), usable: false, item }
    }
}

impl std::fmt::Display for Odd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(formatter, "`{name}` (number {})", self.index)?,
            None => write!(formatter, "number {}", self.index)?,
        }
        write!(formatter, ": {}", self.reason)
    }
}

/// One block of a result, in the order of the server.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a, T> {
    /// One that is known.
    Known(&'a T),
    /// One that could not be used.
    Odd(&'a Odd),
}

/// All blocks of a result in the order of the server: those that are `known`, and between them the
/// odd ones that could not be used.
pub fn parts<'a, T>(known: &'a [T], odd: &'a [Odd]) -> impl Iterator<Item = Part<'a, T>> {
    let mut known = known.iter();
    let mut odd = odd.iter().filter(|odd| !odd.usable).peekable();
    let mut index = 0;
    std::iter::from_fn(move || {
        let part = match odd.next_if(|odd| odd.index <= index) {
            Some(odd) => Part::Odd(odd),
            None => match known.next() {
                Some(known) => Part::Known(known),
                None => Part::Odd(odd.next()?),
            },
        };
        index += 1;
        Some(part)
    })
}

/// Puts odd blocks back where the server had them, into a JSON array of the known ones.
pub fn put_back(known: &mut Value, odd: &[Odd]) {
    let Some(known) = known.as_array_mut() else { return };
    for odd in odd {
        match known.get_mut(odd.index) {
            Some(place) if odd.usable => *place = odd.item.clone(),
            Some(_) => known.insert(odd.index, odd.item.clone()),
            None => known.push(odd.item.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn odd(index: usize, usable: bool) -> Odd {
        Odd { usable, ..Odd::new(index, "test", json!(format!("odd {index}"))) }
    }

    #[test]
    fn parts_come_in_the_order_of_the_server() {
        let all = [odd(0, false), odd(2, true), odd(3, false), odd(4, false)];
        let shown: Vec<_> = parts(&["one", "two"], &all)
            .map(|part| match part {
                Part::Known(text) => (*text).to_owned(),
                Part::Odd(odd) => odd.item.as_str().unwrap().to_owned(),
            })
            .collect();
        assert_eq!(shown, ["odd 0", "one", "two", "odd 3", "odd 4"]);
        let mut known = json!(["one", "two"]);
        put_back(&mut known, &all);
        assert_eq!(known, json!(["odd 0", "one", "odd 2", "odd 3", "odd 4"]));
    }
}
