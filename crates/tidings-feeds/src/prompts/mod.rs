//! Prompts from the stored items: every number and line in them was counted or read. One file for
//! each, and one line in the table.

mod compare;
mod digest;
mod given;
mod keywords;
mod trends;

use std::collections::BTreeMap;
use std::sync::Arc;

use tidings_server::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use tidings_server::{AnswerError, Completion};

use self::given::Given;
use crate::Inner;
use crate::store::Label;
use crate::tools::{Unavailable, part};

/// The definition of an argument.
struct Argument {
    name: &'static str,
    description: &'static str,
    is_required: bool,
}

impl Argument {
    const fn required(name: &'static str, description: &'static str) -> Self {
        Self { name, description, is_required: true }
    }

    const fn optional(name: &'static str, description: &'static str) -> Self {
        Self { name, description, is_required: false }
    }
}

const FEED: Argument = Argument::optional("feed", "The id of a feed; default: all feeds");
const CATEGORY: Argument = Argument::optional("category", "Only items with this category");
const SINCE: Argument = Argument::optional("since", "From this day on, as 2026-01-31");
const UNTIL: Argument = Argument::optional("until", "Up to and including this day");
const MAX_TOKENS: Argument =
    Argument::optional("maxTokens", "About how long it may be, in tokens; default: 8000");

/// A prompt in the list.
struct Words {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
}

impl Words {
    fn prompt(&self) -> Prompt {
        let arguments = self.arguments.iter().map(|argument| {
            PromptArgument::new(argument.name)
                .with_description(argument.description)
                .with_required(argument.is_required)
        });
        Prompt::new(self.name, Some(self.description), Some(arguments.collect()))
            .with_title(self.title)
    }
}

/// A filled-in prompt.
struct Made {
    text: String,
    /// Whether it has no item.
    is_empty: bool,
}

/// Makes the table of the prompts in these files.
macro_rules! table {
    ($($file:ident),* $(,)?) => {
        const WORDS: &[&Words] = &[$(&$file::WORDS),*];

        async fn made(inner: &Arc<Inner>, words: &Words, given: &Given) -> Result<Made, AnswerError> {
            $(if words.name == $file::WORDS.name {
                return $file::made(inner, given).await;
            })*
            Err(AnswerError::not_found(words.name))
        }
    };
}

table! {
    compare,
    digest,
    keywords,
    trends,
}

/// All prompts.
pub(crate) fn offered() -> impl Iterator<Item = Prompt> {
    WORDS.iter().map(|words| words.prompt())
}

/// Fills in a prompt.
///
/// # Errors
///
/// There is no prompt of this name, or an argument is invalid.
pub(crate) async fn fill(
    inner: &Arc<Inner>,
    request: GetPromptRequestParams,
) -> Result<GetPromptResponse, AnswerError> {
    let words = WORDS.iter().find(|words| words.name == request.name);
    let Some(words) = words else { return Err(AnswerError::not_found(request.name)) };
    let given = Given::read(inner, words, request.arguments.unwrap_or_default())?;
    let made = made(inner, words, &given).await?;
    let text = told(inner, &given, made)?;
    let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    result.description = Some(words.description.to_owned());
    Ok(result.into())
}

/// The text of a prompt, with the feeds that are missing because they were never fetched. If no
/// feed was named, they are listed only if there are no items.
fn told(inner: &Inner, given: &Given, made: Made) -> Result<String, AnswerError> {
    let named = given.unavailable();
    if named.is_all() {
        return Ok(format!(
            "None of the requested feeds could be fetched yet, so there are no items. Say so, and \
             why; do not guess their content.\n\n{}",
            named.lines()
        ));
    }
    let all;
    let unavailable = if made.is_empty && !given.names_feeds() {
        all = Unavailable::among(inner, &[], &mut part(given.budget()?));
        &all
    } else {
        named
    };
    if unavailable.is_empty() {
        return Ok(made.text);
    }
    Ok(format!(
        "{}\n\nThese feeds could not be fetched yet, so their items are missing. Say so, and \
         why.\n\n{}",
        made.text.trim_end(),
        unavailable.lines()
    ))
}

/// Values for an argument of a prompt: ids of feeds and categories.
pub(crate) async fn complete(
    inner: &Arc<Inner>,
    completion: &Completion,
) -> Result<Vec<String>, AnswerError> {
    let typed = &completion.value;
    match completion.argument.as_str() {
        "feed" => Ok(inner.fitting_ids(typed)),
        "feeds" => {
            // The last of several is completed.
            let (before, last) = typed.rsplit_once(',').map_or(("", typed.as_str()), |it| it);
            let chosen: Vec<_> = before.split(',').map(str::trim).collect();
            let ids = inner.fitting_ids(last.trim()).into_iter();
            let ids = ids.filter(|id| !chosen.contains(&id.as_str()));
            Ok(ids
                .map(|id| if before.is_empty() { id } else { format!("{before},{id}") })
                .collect())
        }
        "category" => {
            let id = completion.known.get("feed").cloned();
            inner.fitting_labels(id, Label::Category, typed).await
        }
        _ => Ok(Vec::new()),
    }
}

/// The titles of feeds by their keys.
fn titles(inner: &Inner) -> BTreeMap<i64, String> {
    let board = inner.board();
    let title =
        |row: &crate::store::FeedRow| crate::tools::shortened(row.shown_title(), 100).into_owned();
    board.rows().map(|row| (row.key, format!("{} ({})", title(row), row.id))).collect()
}
