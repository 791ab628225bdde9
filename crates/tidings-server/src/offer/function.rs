//! The functions of items: sync or async, with or without input, with or without the request's
//! context.

use rmcp::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny};

use crate::context::Context;
use crate::offer::Reply;

/// A function of an item: `Fn()`, `Fn(Input)`, `Fn(Context)` or `Fn(Input, Context)`, which returns a
/// [`Reply`] or a future of one.
///
/// A function that is not async must not wait: it runs on a thread that serves others too.
///
/// `Shape` distinguishes these forms; it is always inferred.
pub trait Function<Input, Shape>: Send + Sync + 'static {
    /// The final value.
    type Reply: Reply;

    /// Calls it.
    fn call(
        &self,
        input: Input,
        context: Context,
    ) -> impl Future<Output = Self::Reply> + Send + 'static;
}

/// The input of a function without input: anything is accepted and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoInput;

impl<'de> Deserialize<'de> for NoInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl JsonSchema for NoInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoInput".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "properties": {} })
    }
}

macro_rules! function {
    (
        |$input:ident: $type:ty, $context:ident| [$($bound:tt)*],
        ($($parameter:ty),*) => ($($argument:ident),*)
    ) => {
        impl<F, R, $($bound)*> Function<$type, fn($($parameter),*) -> R> for F
        where
            F: Fn($($parameter),*) -> R + Send + Sync + 'static,
            R: Reply,
        {
            type Reply = R;

            fn call(
                &self,
                $input: $type,
                $context: Context,
            ) -> impl Future<Output = R> + Send + 'static {
                std::future::ready(self($($argument),*))
            }
        }

        // A future is not a reply, so a function has only one of the two shapes.
        impl<F, R, W, $($bound)*> Function<$type, (R, fn($($parameter),*) -> W)> for F
        where
            F: Fn($($parameter),*) -> W + Send + Sync + 'static,
            W: Future<Output = R> + Send + 'static,
            R: Reply,
        {
            type Reply = R;

            fn call(
                &self,
                $input: $type,
                $context: Context,
            ) -> impl Future<Output = R> + Send + 'static {
                self($($argument),*)
            }
        }
    };
}

function!(|_input: NoInput, _context| [], () => ());
function!(|_input: NoInput, context| [], (Context) => (context));
function!(|input: I, _context| [I: DeserializeOwned + Send + 'static], (I) => (input));
function!(|input: I, context| [I: DeserializeOwned + Send + 'static], (I, Context) => (input, context));
