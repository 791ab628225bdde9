//! Any template on any URI: nothing panics, and what matches expands to what matches.
//!
//! The input is the template, a line feed, and the URI; neither can have a line feed in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_core::{ResourceUri, Template};

/// The length of template and URI up to which a repeated variable is searched for to the end.
const SHORT: usize = 32;

fuzz_target!(|input: &str| {
    let Some((source, uri)) = input.split_once('\n') else { return };
    let Ok(template) = Template::parse(source) else { return };
    let Some(values) = template.matches(uri) else { return };
    assert!(uri.starts_with(template.literal_prefix()));

    let expansion = template.expand(&values);
    let uses: usize = source.split('{').skip(1).map(variables_in).sum();
    // The value `%20` is `%2520` in `{a}`, but in `{+a}` it is `%20`, which is also a space.
    let is_written_in_one_way = values.values().all(|value| !value.contains('%'));
    // What is left out of a URI that matches may be in the expansion, which is then the longer.
    let is_short = source.len() + uri.len().max(expansion.len()) <= SHORT;
    let must_match =
        uses == template.variables().count() || (is_short && is_written_in_one_way);
    if must_match && expansion.len() <= ResourceUri::MAX_LENGTH {
        assert!(template.matches(&expansion).is_some(), "{expansion:?} from {values:?}");
    }
});

fn variables_in(expression_and_literal: &str) -> usize {
    let expression = expression_and_literal.split('}').next().unwrap_or_default();
    expression.split(',').count()
}
