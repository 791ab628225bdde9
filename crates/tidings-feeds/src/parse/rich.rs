//! Texts that may have markup: their notation, and their content.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::attributes::Attributes;
use super::clean::escape;
use super::document::{Format, Text, TextKind};
use super::element::Element;
use super::entity::bare;
use crate::html::VOID;

/// The notation of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Plain,
    /// Plain, or HTML if it looks like it.
    Either,
    Html,
    /// XML markup, not escaped.
    Inline,
    /// Base64.
    Base64,
}

/// An element whose markup is part of its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rich {
    written: Notation,
    /// Whether characters are escaped, because the text is markup.
    pub(super) escapes: bool,
    /// Whether the whole text is within one `div`, which is then not part of it.
    has_wrapper: bool,
}

impl Rich {
    /// The notation of an element's text.
    pub(super) fn new(
        element: Element,
        attributes: &Attributes<'_>,
        format: Option<Format>,
    ) -> Self {
        let is_atom = matches!(format, Some(Format::Atom03 | Format::Atom10));
        let kind = attributes.get("type").map(|kind| kind.trim().to_ascii_lowercase());
        let kind = kind.as_deref().map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let mode = attributes.get("mode").map(|mode| mode.trim().to_ascii_lowercase());
        let plain = if is_atom { Notation::Plain } else { Notation::Either };
        let written = match (mode.as_deref(), kind) {
            (Some("base64"), _) => Notation::Base64,
            (_, None | Some("")) => match element {
                Element::Description | Element::Encoded => Notation::Html,
                Element::Content if !is_atom => Notation::Html,
                _ if mode.as_deref() == Some("xml") => Notation::Inline,
                _ => plain,
            },
            (_, Some("html" | "text/html")) => Notation::Html,
            (_, Some("xhtml" | "application/xhtml+xml")) => Notation::Inline,
            (_, Some(kind)) if kind.ends_with("+xml") || kind.ends_with("/xml") => Notation::Inline,
            (Some("escaped" | "xml"), Some(_)) => plain,
            (_, Some(kind)) if kind.starts_with("text") || !kind.contains('/') => plain,
            (_, Some(_)) => Notation::Base64,
        };
        Self {
            written,
            escapes: written == Notation::Inline,
            has_wrapper: format == Some(Format::Atom10),
        }
    }

    /// Whether references without a semicolon are resolved before the text is interpreted.
    pub(super) fn takes_bare(self) -> bool {
        !matches!(self.written, Notation::Html | Notation::Base64)
    }

    /// An element within the text begins. Returns whether it is written: a `div` around escaped
    /// markup is not part of it.
    pub(super) fn opens(&mut self, local: &str) -> bool {
        if self.written != Notation::Inline {
            if local.eq_ignore_ascii_case("div") {
                return false;
            }
            self.written = Notation::Inline;
            self.escapes = true;
            self.has_wrapper = false;
        }
        true
    }

    /// The complete text.
    pub(super) fn finish(self, text: &str) -> Text {
        let text = text.trim();
        let kind = match self.written {
            Notation::Html | Notation::Inline => TextKind::Html,
            Notation::Either if looks_like_html(text) => TextKind::Html,
            Notation::Plain | Notation::Either | Notation::Base64 => TextKind::Plain,
        };
        let value = match self.written {
            Notation::Inline if self.has_wrapper => unwrap(text).to_owned(),
            Notation::Base64 => bytes(text).unwrap_or_else(|| text.to_owned()),
            _ => text.to_owned(),
        };
        Text { value: super::decode::undouble(value), kind }
    }
}

/// The decoded text, if it is text.
fn bytes(text: &str) -> Option<String> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes = GeneralPurpose::new(&STANDARD, config).decode(letters).ok()?;
    String::from_utf8(bytes).ok().map(|text| text.trim().to_owned())
}

/// A text without the one `div` around it.
fn unwrap(text: &str) -> &str {
    let whole = || {
        let rest = text.strip_prefix("<div")?;
        let end = rest.find('>')?;
        if !rest[..end].is_empty() && !rest.starts_with(char::is_whitespace) {
            return None;
        }
        let inner = rest[end + 1..].strip_suffix("</div>")?;
        // The last `</div>` must belong to the first `<div>`.
        let mut depth = 0_usize;
        let mut rest = inner;
        while let Some(start) = rest.find('<') {
            rest = &rest[start..];
            if rest.starts_with("</div>") {
                depth = depth.checked_sub(1)?;
            } else if rest.starts_with("<div>") || rest.starts_with("<div ") {
                depth += 1;
            }
            rest = &rest[1..];
        }
        Some(inner.trim())
    };
    whole().unwrap_or(text)
}

/// Whether a text of unknown notation has a closing tag or a reference.
fn looks_like_html(text: &str) -> bool {
    let has_tag = text.match_indices("</").any(|(start, _)| {
        let name = &text[start + 2..];
        let end = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
        end > 0 && name[end..].starts_with('>')
    });
    has_tag
        || bare::is_in(text)
        || text.match_indices('&').any(|(start, _)| {
            let name = text[start + 1..].strip_prefix('#').unwrap_or(&text[start + 1..]);
            let end = name.bytes().take(32).take_while(u8::is_ascii_alphanumeric).count();
            end > 0 && name[end..].starts_with(';')
        })
}

/// Writes a tag of the markup within a text.
pub(super) fn write_start(out: &mut String, local: &str, attributes: &Attributes<'_>) {
    out.push('<');
    out.push_str(local);
    for (name, value) in attributes.iter() {
        if name == "xmlns" || name.starts_with("xmlns:") {
            continue;
        }
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        out.push_str(&escape(value).replace('"', "&quot;"));
        out.push('"');
    }
    out.push('>');
}

/// Whether an element of HTML has no end tag.
pub(super) fn is_void(local: &str) -> bool {
    VOID.iter().any(|name| name.eq_ignore_ascii_case(local))
}

/// Writes the end tag of an element within a text, unless HTML has none for it.
pub(super) fn write_end(out: &mut String, local: &str) {
    if !is_void(local) {
        out.push_str("</");
        out.push_str(local);
        out.push('>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_div_around_everything_is_taken_off() {
        assert_eq!(unwrap("<div>a<div>b</div></div>"), "a<div>b</div>");
        assert_eq!(unwrap("<div class=\"x\"> a </div>"), "a");
        assert_eq!(unwrap("<div>a</div><div>b</div>"), "<div>a</div><div>b</div>");
        assert_eq!(unwrap("<divan>a</div>"), "<divan>a</div>");
    }

    #[test]
    fn html_is_known_by_its_marks() {
        assert!(looks_like_html("<b>x</b>") && looks_like_html("x &eacute; y"));
        assert!(looks_like_html("x &eacute y") && !looks_like_html("R&D ?a=1&copy=2"));
        assert!(!looks_like_html("1 < 2 & 3 > 2") && !looks_like_html("</ x"));
    }
}
