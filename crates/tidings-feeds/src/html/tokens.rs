//! The only parser of markup: HTML as tags and texts, as browsers parse it, with positions.

use std::borrow::Cow;
use std::cell::Cell;
use std::convert::Infallible;
use std::ops::Range;
use std::rc::Rc;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, Tokenizer};

/// A part of HTML. Comments and declarations are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A text in its original spelling, with references. A `<` in it does not begin a tag.
    Text(&'a str),
    Start(Tag<'a>),
    /// An end tag; its name in lower case.
    End(String),
    /// An unfinished tag or comment at the end of the text. It is always the last part.
    Unended(&'a str),
}

/// A start tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag<'a> {
    /// In lower case.
    pub(crate) name: String,
    /// The whole tag in its original spelling.
    pub(crate) written: &'a str,
    /// Its end.
    pub(crate) end: usize,
    pub(crate) attributes: Vec<Attribute<'a>>,
    /// Whether it ends with a slash, which counts only in drawings and formulas.
    pub(crate) is_closed: bool,
}

/// An attribute of a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    /// In lower case.
    pub(crate) name: String,
    /// Its value in its original spelling, with references and without quotation marks.
    pub(crate) value: &'a str,
    /// The position of its value.
    pub(crate) place: Range<usize>,
}

impl Tag<'_> {
    /// The number of references in it.
    pub(crate) fn references(&self) -> usize {
        self.written.bytes().filter(|byte| *byte == b'&').count()
    }
}

/// A text that can be put between tags anywhere.
pub(crate) fn quoted_angles(text: &str) -> Cow<'_, str> {
    if text.contains('<') { Cow::Owned(text.replace('<', "&lt;")) } else { Cow::Borrowed(text) }
}

/// The parts of HTML in order. The time is in proportion to the length.
pub(crate) fn tokens(source: &str) -> impl Iterator<Item = Token<'_>> {
    // A text without markup takes a short cut.
    let (words, source) = if source.contains('<') { ("", source) } else { (source, "") };
    let words = Some(words).filter(|words| !words.is_empty()).map(Token::Text);
    let ended = Rc::new(Cell::new(0));
    let mut reader =
        TokenReader { source, ended: Rc::clone(&ended), tag: Tag::default(), start: 0 };
    let take = move |event: CallbackEvent<'_>, span: Span<usize>| reader.take(&event, span);
    let mut emitter = CallbackEmitter::new(take);
    emitter.naively_switch_states(true);
    let parts = Tokenizer::new_with_emitter(source, WithoutErrors(emitter));
    let parts = parts.map(|part: Result<_, Infallible>| match part {
        Ok(part) => part,
        Err(never) => match never {},
    });
    let rest = move || source.get(ended.get()..).filter(|it| !it.is_empty()).map(Token::Unended);
    words.into_iter().chain(parts).chain(std::iter::once_with(rest).flatten())
}

/// The library's emitter without parse errors. Nobody reads them, and finding them takes almost half
/// of the time.
struct WithoutErrors<E>(E);

impl<E: Emitter> ForwardingEmitter for WithoutErrors<E> {
    type Token = E::Token;

    fn inner(&mut self) -> &mut impl Emitter<Token = Self::Token> {
        &mut self.0
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }
}

struct TokenReader<'a> {
    source: &'a str,
    /// The end of the last finished part.
    ended: Rc<Cell<usize>>,
    /// The current tag, and its beginning.
    tag: Tag<'a>,
    start: usize,
}

impl<'a> TokenReader<'a> {
    fn take(&mut self, event: &CallbackEvent<'_>, span: Span<usize>) -> Option<Token<'a>> {
        match event {
            CallbackEvent::String { .. } => {
                self.ended.set(span.end);
                return Some(Token::Text(self.at(span.start..span.end)));
            }
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Tag { name: text(name), ..Tag::default() };
                self.start = span.start;
            }
            CallbackEvent::AttributeName { name } => {
                let place = span.end..span.end;
                self.tag.attributes.push(Attribute { name: text(name), value: "", place });
            }
            CallbackEvent::AttributeValue { .. } => {
                let place = span.start..span.end;
                let value = self.at(place.clone());
                if let Some(attribute) = self.tag.attributes.last_mut() {
                    (attribute.value, attribute.place) = (value, place);
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                self.ended.set(span.end);
                let (written, is_closed) = (self.at(self.start..span.end), *self_closing);
                let tag = std::mem::take(&mut self.tag);
                return Some(Token::Start(Tag { written, end: span.end, is_closed, ..tag }));
            }
            CallbackEvent::EndTag { name } => {
                self.ended.set(span.end);
                // An end tag may have attributes, which have no meaning.
                self.tag = Tag::default();
                return Some(Token::End(text(name)));
            }
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } => {
                if self.at(0..span.end).ends_with('>') {
                    self.ended.set(span.end);
                }
            }
            CallbackEvent::Error(_) => {}
        }
        None
    }

    fn at(&self, place: Range<usize>) -> &'a str {
        self.source.get(place).unwrap_or_default()
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn shape(source: &str) -> String {
        let mut out = String::new();
        for token in tokens(source) {
            match token {
                Token::Text(text) => write!(out, "[{text}]").unwrap(),
                Token::Start(tag) => {
                    write!(out, "({}", tag.name).unwrap();
                    for attribute in &tag.attributes {
                        write!(out, " {}={}", attribute.name, attribute.value).unwrap();
                    }
                    out.push_str(if tag.is_closed { "/)" } else { ")" });
                }
                Token::End(name) => write!(out, "(/{name})").unwrap(),
                Token::Unended(rest) => write!(out, "{{{rest}}}").unwrap(),
            }
        }
        out
    }

    #[track_caller]
    fn check(source: &str, expected: &str) {
        assert_eq!(shape(source), expected, "{source}");
    }

    #[test]
    fn markup_is_read_as_browsers_read_it() {
        check("a<B>é</b >c", "[a](b)[é](/b)[c]");
        check(
            "<a href=x/y title='&quot;é>' ID = \"z\" hidden>w",
            "(a href=x/y title=&quot;é> id=z hidden=)[w]",
        );
        check("<br/><a b=c/>", "(br/)(a b=c/)");
        check("<a b='c'd=\"e\"f>", "(a b=c d=e f=)");
        check("<a é=è ß='' x>y", "(a é=è ß= x=)[y]");
        check("1 < 2 &lt; 3 <4 <é & &amp", "[1 < 2 &lt; 3 <4 <é & &amp]");
        check("a<!-- <b> -->c<!d>e<?f?>g<![CDATA[h]]>i", "[a][c][e][g][i]");
        check(
            "<script>'<a>' &amp;</script>b<title>c<d>&amp;</title>",
            "(script)['<a>' &amp;](/script)[b](title)[c<d>&amp;](/title)",
        );
        check(
            "<a b=&amp;c d='&#x26;&nosuch;x&copy'>&copy;x",
            "(a b=&amp;c d=&#x26;&nosuch;x&copy)[&copy;x]",
        );
        check(
            "<script>a</scr</script>b<style><!--</style>c",
            "(script)[a</scr](/script)[b](style)[<!--](/style)[c]",
        );
    }

    #[test]
    fn what_does_not_end_is_the_last_part() {
        check("a<b c='d", "[a]{<b c='d}");
        check("a<!-- b>c", "[a]{<!-- b>c}");
        check("a</", "[a</]");
        check("a</b", "[a]{</b}");
        check("<a<b", "{<a<b}");
        check("", "");
    }

    #[test]
    fn ends_of_lines_and_zeros_stay_where_they_are() {
        check("a\r\nb<c d='e\r\nf'>\r\ng", "[a\r\nb](c d=e\r\nf)[\r\ng]");
        check("\u{0}a<b\u{0} c='\u{0}x'>", "[\u{0}a](b\u{fffd} c=\u{0}x)");
    }

    proptest! {
        #[test]
        fn parts_are_where_they_are_said_to_be(source in "(<a |<b>|</b>|<é|</|/>|href=|src=|'|\"|x/y|#|:|<!--|-->|--!>|<!|<?|<script>|</script>|<script|</script |<title>|</title>|<textarea>|<style>|</style|<plaintext>|<!\\[CDATA\\[|\\]\\]>|&#58;|&#x2F|&colon;|&quot;|&gt;|&amp|&copy|&notin|&noti|[ é>/=&;<a-c\\r\\n\u{0}\u{a0}])*") {
            let mut at = 0;
            for token in tokens(&source) {
                let (Token::Text(part) | Token::Unended(part) | Token::Start(Tag { written: part, .. })) = token
                else { continue };
                prop_assert!(!part.is_empty());
                let found = source[at..].find(part);
                prop_assert!(found.is_some(), "{part:?} is not after {at}");
                at += found.unwrap_or_default() + part.len();
                let Token::Start(tag) = token else { continue };
                prop_assert!(part.starts_with('<') && part.ends_with('>'));
                prop_assert_eq!(source[..tag.end].strip_suffix(part).map(|before| before.len() + part.len()), Some(tag.end));
                for attribute in &tag.attributes {
                    prop_assert_eq!(&source[attribute.place.clone()], attribute.value);
                    prop_assert!(attribute.place.end < tag.end && attribute.place.start > tag.end - part.len());
                }
                // A tag is the same wherever it is.
                let alone = tokens(part).next();
                let alone = if let Some(Token::Start(tag)) = alone { tag } else { Tag::default() };
                let said = |tag: &Tag<'_>| {
                    let attributes = tag.attributes.iter().map(|it| (it.name.clone(), it.value.to_owned()));
                    (tag.name.clone(), tag.is_closed, attributes.collect::<Vec<_>>())
                };
                prop_assert_eq!(said(&alone), said(&tag));
            }
        }
    }
}
