//! The tools of the feeds: one file for each, and one line in the list.
//!
//! A file has `NAME`, `NEEDS`, `tool()`, its `Arguments` and `call()`. Arguments are checked
//! against the tool's own schema before. A call that fails returns a result with the reason, so
//! that a model can read it and do better.

mod add_feed;
mod all_feeds;
mod answer;
mod arguments;
mod budget;
mod choice;
mod describe;
mod export;
mod feed_items;
mod fetch_link;
mod health;
mod item;
mod mark_items;
mod merge;
mod new_since;
mod pause_feed;
mod refresh_feed;
mod remove_feed;
mod search;
mod unavailable;

use std::sync::Arc;

use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidings_server::model::{CallToolResult, JsonObject, Tool};
use tidings_server::{AnswerError, Context, Offer};

pub(crate) use self::answer::shortened;
use self::answer::{Answer, Refusal};
pub(crate) use self::budget::Budget;
pub use self::export::Format as ExportFormat;
pub(crate) use self::export::whole as exported;
pub(crate) use self::item::{ShownItem, Texts, fitting};
pub(crate) use self::unavailable::{Unavailable, part};
use crate::Inner;
use crate::config::{Config, Tools};

/// The requirements of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It writes to the store.
    Change,
    /// It needs the web.
    Fetch,
}

/// One call in progress.
struct Call {
    inner: Arc<Inner>,
    /// The size limit of the answer's structure.
    budget: Budget,
}

/// The description of a tool.
struct Described {
    tool: Tool,
    input: Validator,
}

/// The function that answers the calls of one tool.
struct Desk {
    inner: Arc<Inner>,
    described: Described,
}

/// Makes the tools of these files.
macro_rules! tools {
    ($($file:ident),* $(,)?) => {
        /// The tools of a server with this configuration.
        pub(crate) fn offered(inner: &Arc<Inner>) -> Vec<Offer<Tool>> {
            let mut offers = Vec::new();
            $(if is_offered($file::NEEDS, &inner.config) {
                let described = Described::new($file::tool(), $file::NEEDS);
                let tool = described.tool.clone();
                let desk = Arc::new(Desk { inner: inner.clone(), described });
                let run = move |arguments: JsonObject, context: Context| {
                    let desk = desk.clone();
                    async move {
                        let work = async {
                            let (call, arguments) = desk.open(arguments)?;
                            $file::call(&call, arguments).await
                        };
                        desk.answered(&context, work).await
                    }
                };
                offers.push(for_writers(Offer::described(tool, run), $file::NEEDS, &inner.config));
            })*
            offers
        }

        /// All tools, with their requirements.
        #[cfg(test)]
        fn described() -> Vec<(Described, &'static [Need])> {
            vec![$((Described::new($file::tool(), $file::NEEDS), $file::NEEDS)),*]
        }
    };
}

tools! {
    add_feed,
    all_feeds,
    export,
    feed_items,
    fetch_link,
    health,
    mark_items,
    merge,
    new_since,
    pause_feed,
    refresh_feed,
    remove_feed,
    search,
}

/// A tool that changes something is for those who may, if only some may.
fn for_writers(offer: Offer<Tool>, needs: &[Need], config: &Config) -> Offer<Tool> {
    let is_for_some = needs.contains(&Need::Change) && !config.writers.is_empty();
    if is_for_some { offer.audience(config.writers.clone()) } else { offer }
}

impl Desk {
    /// Checks the arguments of a call, and converts them to the tool's type.
    fn open<T: DeserializeOwned>(&self, mut arguments: JsonObject) -> Result<(Call, T), Refusal> {
        let Described { tool, input, .. } = &self.described;
        arguments::of_old(&tool.name, &mut arguments);
        let (budget, arguments) = arguments::checked(input, arguments)?;
        // The other half is for the same as text.
        let call = Call { inner: self.inner.clone(), budget: budget.shared(2) };
        Ok((call, arguments::read(arguments)?))
    }

    /// The result of a call. A failure is a result with the reason.
    async fn answered(
        &self,
        context: &Context,
        work: impl Future<Output = Result<Answer, Refusal>>,
    ) -> Result<CallToolResult, AnswerError> {
        let answer = tokio::select! {
            biased;
            () = context.cancelled() => return Err(AnswerError::Failed("cancelled".to_owned())),
            answer = work => answer,
        };
        let name = &self.described.tool.name;
        Ok(answer.map_or_else(|refusal| refusal.result(name), Answer::result))
    }
}

fn is_offered(needs: &[Need], config: &Config) -> bool {
    let may_change = config.tools == Tools::All && config.role.writes();
    config.tools != Tools::None
        && needs.iter().all(|need| match need {
            Need::Change => may_change,
            Need::Fetch => config.role.fetches(),
        })
}

impl Described {
    fn new(tool: Tool, needs: &[Need]) -> Self {
        let tool = describe::finished(tool, needs);
        let schema = Value::Object((*tool.input_schema).clone());
        let input = jsonschema::validator_for(&schema).expect("schemas of our own are right");
        Self { tool, input }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Data, Fetching, Role};

    fn check(change: impl FnOnce(&mut Config), expected: [bool; 4]) {
        let mut config = Config::new(Data::Memory);
        change(&mut config);
        let needs: [&[Need]; 4] =
            [&[], &[Need::Fetch], &[Need::Change], &[Need::Change, Need::Fetch]];
        assert_eq!(needs.map(|needs| is_offered(needs, &config)), expected, "{config:?}");
    }

    #[test]
    fn tools_are_offered_where_they_can_do_their_work() {
        check(|_| {}, [true, true, true, true]);
        check(|config| config.tools = Tools::Reading, [true, true, false, false]);
        check(|config| config.tools = Tools::None, [false; 4]);
        check(|config| config.role = Role::Reader, [true, false, false, false]);
        check(|config| config.role = Role::Server(Fetching::Off), [true, false, true, false]);
    }

    #[test]
    fn every_tool_has_both_schemas_and_says_what_it_does() {
        for (known, needs) in described() {
            let tool = &known.tool;
            let name = &tool.name;
            assert!(tool.title.is_some() && tool.description.is_some(), "{name}");
            let output = Value::Object((**tool.output_schema.as_ref().unwrap()).clone());
            jsonschema::meta::validate(&output).unwrap();
            assert_eq!(output["type"], "object", "{name}");
            let input = Value::Object((*tool.input_schema).clone());
            jsonschema::meta::validate(&input).unwrap();
            assert_eq!(input["additionalProperties"], false, "{name}");
            assert!(input["properties"]["maxTokens"].is_object(), "{name}");
            for (argument, schema) in input["properties"].as_object().unwrap() {
                assert!(schema["description"].is_string(), "{name}: {argument}");
            }
            let arguments = input["properties"].as_object().unwrap().iter();
            for (argument, schema) in arguments.filter(|(_, schema)| schema["type"] == "integer") {
                let has_both = schema["minimum"].is_u64() && schema["maximum"].is_u64();
                assert!(has_both, "{name}: {argument}");
                let Value::Object(arguments) = json!({ argument: 1e30 }) else { panic!() };
                let refusal = arguments::checked(&known.input, arguments).unwrap_err().to_string();
                let expected = format!("`{argument}`: 1e+30 is greater than the maximum of ");
                assert!(refusal.contains(&expected), "{refusal}");
            }
            let annotations = tool.annotations.as_ref().unwrap();
            let changes = needs.contains(&Need::Change);
            assert_eq!(annotations.read_only_hint, Some(!changes), "{name}");
            for hint in [
                annotations.destructive_hint,
                annotations.idempotent_hint,
                annotations.open_world_hint,
            ] {
                assert!(hint.is_some(), "{name}");
            }
        }
    }
}
