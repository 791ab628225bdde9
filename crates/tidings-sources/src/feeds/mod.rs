//! News feeds: RSS, Atom and their kin, read as they are found.
//!
//! [`parse::parse`] makes one [`parse::Document`] of the bytes of any feed, well formed or not;
//! [`date::Moment`] is what is left of a date in any of the ways people write one.

pub mod date;
pub mod parse;
