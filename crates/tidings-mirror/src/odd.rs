//! Odd parts: items of lists and blocks of results that violate the protocol.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An item of a list, or a block of a result, that violates the protocol.
///
/// It does not affect the rest: the other items are listed, and a call that ran has its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Odd {
    /// Its position among the server's items or blocks, from 0.
    pub index: usize,
    /// Its name, URI or type.
    pub name: Option<String>,
    /// The problem, and how it was handled.
    pub reason: String,
    /// Whether it is used anyway, without the invalid part or with missing fields filled in.
    /// Otherwise it is only here.
    pub usable: bool,
    /// The item or block as the server sent it.
    pub item: Value,
}

impl Odd {
    /// An unusable one, at this position, for this reason. Its name is taken from the item.
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

/// One block of a result, in the server's order.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a, T> {
    /// A known one.
    Known(&'a T),
    /// An unusable one.
    Odd(&'a Odd),
}

/// All blocks of a result in the server's order: the `known` ones, with the unusable odd ones
/// between them.
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

/// Inserts odd blocks into a JSON array of the known ones, at the server's positions.
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
