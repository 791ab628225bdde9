//! Texts by name, converted to a type: the variables of a template, the arguments of a prompt.
//!
//! A struct takes them by name, a tuple in the order of the template, and any other type takes the
//! only one. Numbers and booleans are parsed from their text.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::answer::AnswerError;

/// Converts texts by name, in this order, to a type.
///
/// # Errors
///
/// The first invalid one, by its name.
pub(crate) fn read<T: DeserializeOwned>(
    texts: impl IntoIterator<Item = (String, String)>,
) -> Result<T, AnswerError> {
    let texts: Vec<_> = texts.into_iter().collect();
    let mut track = serde_path_to_error::Track::new();
    let texts_by_name = Texts(&texts);
    let deserializer = serde_path_to_error::Deserializer::new(texts_by_name, &mut track);
    T::deserialize(deserializer).map_err(|error| {
        let path = track.path().to_string();
        let given = texts.iter().find(|(name, _)| *name == path).or(match &texts[..] {
            [one] => Some(one),
            _ => None,
        });
        let (name, value) = match given {
            Some((name, value)) => (name.clone(), value.clone()),
            None => (path, String::new()),
        };
        AnswerError::invalid(name, value, error.to_string())
    })
}

#[derive(Clone, Copy)]
struct Texts<'a>(&'a [(String, String)]);

impl<'a> Texts<'a> {
    /// The only text.
    fn only(self) -> Result<Text<'a>, de::value::Error> {
        match self.0 {
            [(_, text)] => Ok(Text(text)),
            _ => Err(de::Error::custom("there are several values: take a struct or a tuple")),
        }
    }

    fn map<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, de::value::Error> {
        let pairs = self.0.iter().map(|(name, text)| (name.as_str(), Text(text)));
        visitor.visit_map(MapDeserializer::new(pairs))
    }

    fn sequence<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, de::value::Error> {
        let texts = self.0.iter().map(|(_, text)| Text(text));
        visitor.visit_seq(SeqDeserializer::new(texts))
    }
}

macro_rules! of_the_only_text {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.only()?.$method(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Texts<'_> {
    type Error = de::value::Error;

    of_the_only_text! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.map(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.sequence(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.sequence(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.sequence(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.0.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.only()?.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }
}

/// One text, parsed as a number or boolean where one is wanted.
struct Text<'a>(&'a str);

impl IntoDeserializer<'_> for Text<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $what:literal)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(de::Error::custom(concat!("it must be ", $what))),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = de::value::Error;

    parsed! {
        deserialize_bool visit_bool "`true` or `false`"
        deserialize_i8 visit_i8 "a whole number from -128 to 127"
        deserialize_i16 visit_i16 "a whole number from -32768 to 32767"
        deserialize_i32 visit_i32 "a whole number"
        deserialize_i64 visit_i64 "a whole number"
        deserialize_i128 visit_i128 "a whole number"
        deserialize_u8 visit_u8 "a whole number from 0 to 255"
        deserialize_u16 visit_u16 "a whole number from 0 to 65535"
        deserialize_u32 visit_u32 "a whole number, not negative"
        deserialize_u64 visit_u64 "a whole number, not negative"
        deserialize_u128 visit_u128 "a whole number, not negative"
        deserialize_f32 visit_f32 "a number"
        deserialize_f64 visit_f64 "a number"
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Page {
        name: String,
        number: u32,
        colour: Option<Colour>,
        #[serde(default)]
        wide: bool,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Day(String);

    fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[track_caller]
    fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug>(
        pairs: &[(&str, &str)],
        expected: T,
    ) {
        assert_eq!(read::<T>(texts(pairs)), Ok(expected));
    }

    #[test]
    fn a_struct_takes_texts_by_name_and_reads_numbers() {
        let page = Page { name: "a".into(), number: 7, colour: None, wide: false };
        check(&[("number", "7"), ("name", "a"), ("unknown", "x")], page);
        let page = Page { name: "1".into(), number: 0, colour: Some(Colour::Red), wide: true };
        check(&[("name", "1"), ("number", "0"), ("colour", "red"), ("wide", "true")], page);
    }

    #[test]
    fn the_only_text_is_anything() {
        check(&[("date", "2026-01-01")], Day("2026-01-01".into()));
        check(&[("date", "2026-01-01")], "2026-01-01".to_owned());
        check(&[("n", "-5")], -5_i64);
        check(&[("n", "5")], Some(5_u8));
        check(&[("colour", "red")], Colour::Red);
        check::<Option<u8>>(&[], None);
    }

    #[test]
    fn a_tuple_takes_them_in_order() {
        check(&[("b", "x"), ("a", "3")], ("x".to_owned(), 3_u16));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_value() {
        let error = read::<Page>(texts(&[("name", "a"), ("number", "-1")])).unwrap_err();
        assert_eq!(
            error,
            AnswerError::invalid("number", "-1", "it must be a whole number, not negative")
        );
        let error = read::<u8>(texts(&[("n", "300")])).unwrap_err();
        assert_eq!(
            error,
            AnswerError::invalid("n", "300", "it must be a whole number from 0 to 255")
        );
        let error = read::<Page>(texts(&[("name", "a")])).unwrap_err();
        assert!(error.to_string().contains("missing field `number`"), "{error}");
        let error = read::<String>(texts(&[("a", "1"), ("b", "2")])).unwrap_err();
        assert!(error.to_string().contains("several values"), "{error}");
    }
}
