//! Items that answer for themselves: an item, its functions, and whether it is enabled.

mod function;
mod reply;
pub(crate) mod schema;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;

use rmcp::model::{
    Annotations, Icon, JsonObject, Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations,
};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidings_core::{Fingerprint, Template};

use crate::answer::Completion;
use crate::answers::{Answers, Variables};
use crate::labels::{LabelError, Labels};
use crate::raw::Raw;
use crate::source::Boxed;

pub use function::{Function, NoInput};
pub use reply::{CompletionReply, Json, PromptReply, ReadReply, Reply, ToolReply};

/// An item with its functions, ready to be put on a [`Shelf`](crate::Shelf).
///
/// A plain [`Tool`], [`Prompt`], [`Resource`] or [`ResourceTemplate`], typed or [`Raw`], is an
/// offer, too: its source answers for it.
///
/// ```
/// use serde::Deserialize;
/// use tidings_server::schemars::JsonSchema;
/// use tidings_server::{Hub, Offer};
///
/// #[derive(Deserialize, JsonSchema)]
/// #[schemars(crate = "tidings_server::schemars")]
/// struct Roll {
///     /// How many sides the die has.
///     sides: u32,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let hub = Hub::new("dice", "1.0");
/// let roll = Offer::tool("roll", "Rolls a die", |roll: Roll| format!("{} of {0}", roll.sides))
///     .title("Roll a die")
///     .read_only()
///     .disabled();
/// let roll = hub.source("dice")?.add(roll)?;
/// roll.enable()?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is offered before it is on a shelf"]
pub struct Offer<T> {
    pub(crate) item: T,
    pub(crate) answers: Answers,
    pub(crate) enabled: bool,
    /// Nothing if it was not said: then a new item is for everyone, and an updated one is for those
    /// it was for.
    pub(crate) audience: Option<Result<Labels, LabelError>>,
}

macro_rules! plain {
    ($($item:ty),*) => {
        $(impl From<$item> for Offer<$item> {
            fn from(item: $item) -> Self {
                Self { item, answers: Answers::default(), enabled: true, audience: None }
            }
        })*
    };
}

plain!(
    Tool,
    Prompt,
    Resource,
    ResourceTemplate,
    Raw<Tool>,
    Raw<Prompt>,
    Raw<Resource>,
    Raw<ResourceTemplate>
);

impl<T> Offer<T> {
    /// Changes the item, for fields without a method here.
    pub fn with(mut self, change: impl FnOnce(&mut T)) -> Self {
        change(&mut self.item);
        self
    }

    /// Offers it only to clients with one of these labels, such as `"role:admin"`. To all others it
    /// does not exist. Repeated calls add labels; without any it is for everyone.
    ///
    /// ```
    /// # use tidings_server::Offer;
    /// let stop = Offer::tool("stop", "Stops the press", || "stopped");
    /// let stop = stop.audience("role:editor").audience(["role:printer", "user:ada"]);
    /// ```
    ///
    /// The shelf refuses an item with an invalid label, and one whose audience is an empty set.
    pub fn audience<L>(mut self, labels: L) -> Self
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        let labels = labels.try_into().map_err(Into::into);
        let labels =
            labels.and_then(|it| if it.is_empty() { Err(LabelError::Empty) } else { Ok(it) });
        self.audience = Some(match self.audience {
            Some(Ok(before)) => labels.and_then(|labels| before.with(&labels)),
            Some(Err(error)) => Err(error),
            None => labels,
        });
        self
    }

    /// Offers it to everyone, as by default. In an update, this removes the audience.
    pub fn everyone(mut self) -> Self {
        self.audience = Some(Ok(Labels::NONE));
        self
    }

    /// Offers it only after it is [enabled](crate::Handle::enable).
    pub fn disabled(mut self) -> Self {
        self.enabled = false;
        self
    }

    fn answering(item: T, answer: impl FnOnce(&mut Answers)) -> Self {
        let mut answers = Answers::default();
        answer(&mut answers);
        Self { item, answers, enabled: true, audience: None }
    }

    fn complete_with<I, S>(mut self, argument: &str, values: I) -> Self
    where
        I: Function<Completion, S>,
        I::Reply: CompletionReply,
    {
        let values = Arc::new(values);
        let complete = move |completion, context| -> Boxed<'static, _> {
            let values = values.clone();
            Box::pin(async move { values.call(completion, context).await.into_completions() })
        };
        self.answers.complete.insert(argument.to_owned(), Arc::new(complete));
        self
    }
}

impl Offer<Tool> {
    /// A tool. The schema of its arguments is derived from the function's input. Invalid arguments
    /// are an error that names the field. [`Reply`] lists the types that the function may return.
    pub fn tool<I, S, F>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Function<I, S>,
        F::Reply: ToolReply,
    {
        let schema = Arc::new(schema::of_arguments::<I>());
        let mut tool = Tool::new(name.into(), description.into(), schema);
        tool.output_schema = F::Reply::output_schema().map(Arc::new);
        Self::described(tool, run)
    }

    /// A tool with a given description. Its arguments are converted to the function's input and not
    /// checked against the schema.
    pub fn described<I, S, F>(tool: Tool, run: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        F: Function<I, S>,
        F::Reply: ToolReply,
    {
        let run = Arc::new(run);
        let call = move |arguments, context| -> Boxed<'static, _> {
            let run = run.clone();
            Box::pin(async move {
                match arguments_of::<I>(arguments) {
                    Ok(input) => run.call(input, context).await.into_result(),
                    Err(words) => Err::<(), _>(words).into_result(),
                }
            })
        };
        Self::answering(tool, |answers| answers.call = Some(Arc::new(call)))
    }

    /// A title for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with(|tool| tool.title = Some(title.into()))
    }

    /// Its icons.
    pub fn icons(self, icons: Vec<Icon>) -> Self {
        self.with(|tool| tool.icons = Some(icons))
    }

    /// Its behaviour, such as whether it changes anything.
    pub fn annotations(self, annotations: ToolAnnotations) -> Self {
        self.with(|tool| tool.annotations = Some(annotations))
    }

    /// It changes nothing.
    pub fn read_only(self) -> Self {
        self.with(|tool| {
            let annotations = tool.annotations.take().unwrap_or_default();
            tool.annotations = Some(annotations.read_only(true));
        })
    }

    /// Lists this schema of its arguments instead of the derived one. It is not checked.
    pub fn input_schema(self, schema: JsonObject) -> Self {
        self.with(|tool| tool.input_schema = Arc::new(schema))
    }

    /// Lists this schema of its structured content instead of the derived one.
    pub fn output_schema(self, schema: JsonObject) -> Self {
        self.with(|tool| tool.output_schema = Some(Arc::new(schema)))
    }
}

impl Offer<Prompt> {
    /// A prompt. Its arguments are the fields of the function's input.
    pub fn prompt<I, S, F>(name: impl Into<String>, description: impl Into<String>, fill: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Function<I, S>,
        F::Reply: PromptReply,
    {
        let arguments = schema::prompt_arguments::<I>();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        let prompt = Prompt::new(name.into(), Some(description.into()), arguments);
        let fill = Arc::new(fill);
        let filled = move |arguments: JsonObject, context| -> Boxed<'static, _> {
            let fill = fill.clone();
            Box::pin(async move {
                let texts = arguments.into_iter().map(|(name, value)| (name, text_of(value)));
                fill.call(variables::read(texts)?, context).await.into_messages()
            })
        };
        Self::answering(prompt, |answers| answers.fill = Some(Arc::new(filled)))
    }

    /// A title for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with(|prompt| prompt.title = Some(title.into()))
    }

    /// Its icons.
    pub fn icons(self, icons: Vec<Icon>) -> Self {
        self.with(|prompt| prompt.icons = Some(icons))
    }

    /// Completes the values of an argument.
    pub fn complete<S, F>(self, argument: &str, values: F) -> Self
    where
        F: Function<Completion, S>,
        F::Reply: CompletionReply,
    {
        self.complete_with(argument, values)
    }
}

impl Offer<Resource> {
    /// A resource of this name.
    pub fn resource<S, F>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        F: Function<NoInput, S>,
        F::Reply: ReadReply,
    {
        let read = Arc::new(read);
        let reading = move |uri, _, context| -> Boxed<'static, _> {
            let read = read.clone();
            Box::pin(async move { read.call(NoInput, context).await.into_contents(&uri) })
        };
        let resource = Resource::new(uri.into(), name.into());
        Self::answering(resource, |answers| answers.read = Some(Arc::new(reading)))
    }

    /// A title for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with(|resource| resource.title = Some(title.into()))
    }

    /// Its description.
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with(|resource| resource.description = Some(description.into()))
    }

    /// Its media type.
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with(|resource| resource.mime_type = Some(mime_type.into()))
    }

    /// Its icons.
    pub fn icons(self, icons: Vec<Icon>) -> Self {
        self.with(|resource| resource.icons = Some(icons))
    }

    /// Its audience and priority.
    pub fn annotations(self, annotations: Annotations) -> Self {
        self.with(|resource| resource.annotations = Some(annotations))
    }

    /// A cheap fingerprint of the content: it differs exactly when the content does. Without it,
    /// the hub reads the content to compare it.
    pub fn version(mut self, version: impl Fn() -> Fingerprint + Send + Sync + 'static) -> Self {
        self.answers.version = Some(Arc::new(version));
        self
    }
}

impl Offer<ResourceTemplate> {
    /// A template of this name. The function's input has the template's variables: a struct takes
    /// them by name, a tuple in order, and any other type takes the only one.
    pub fn template<I, S, F>(template: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        F: Function<I, S>,
        F::Reply: ReadReply,
    {
        let template = template.into();
        // The shelf refuses an invalid template.
        let names = Template::parse(&template).ok();
        let names: Vec<_> = names.iter().flat_map(Template::variables).map(str::to_owned).collect();
        let read = Arc::new(read);
        let reading = move |uri, mut values: Variables, context| -> Boxed<'static, _> {
            let read = read.clone();
            let in_order = names.iter().filter_map(|name| values.remove_entry(name));
            let texts: Vec<_> = in_order.collect();
            Box::pin(async move {
                read.call(variables::read(texts)?, context).await.into_contents(&uri)
            })
        };
        let template = ResourceTemplate::new(template, name.into());
        Self::answering(template, |answers| answers.read = Some(Arc::new(reading)))
    }

    /// A title for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with(|template| template.title = Some(title.into()))
    }

    /// The description of its resources.
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with(|template| template.description = Some(description.into()))
    }

    /// The media type of its resources.
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with(|template| template.mime_type = Some(mime_type.into()))
    }

    /// Its icons.
    pub fn icons(self, icons: Vec<Icon>) -> Self {
        self.with(|template| template.icons = Some(icons))
    }

    /// Completes the values of a variable.
    pub fn complete<S, F>(self, variable: &str, values: F) -> Self
    where
        F: Function<Completion, S>,
        F::Reply: CompletionReply,
    {
        self.complete_with(variable, values)
    }
}

/// The arguments of a call as the tool's type, or the invalid one and the reason.
fn arguments_of<I: DeserializeOwned>(arguments: JsonObject) -> Result<I, String> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let words = error.into_inner();
        // A missing or unknown field is named by the error itself.
        if path == "." { words.to_string() } else { format!("`{path}`: {words}") }
    })
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
