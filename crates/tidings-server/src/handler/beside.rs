//! The arguments of a heavy call, which travel beside the protocol library.

use std::sync::{Arc, Mutex};

use rmcp::model::JsonObject;

/// The arguments of a heavy call, as an extension of its request: the handler takes them.
#[derive(Clone, Debug)]
pub(crate) struct Beside(Arc<Mutex<Option<JsonObject>>>);

impl Beside {
    pub(crate) fn new(arguments: JsonObject) -> Self {
        Self(Arc::new(Mutex::new(Some(arguments))))
    }

    /// The arguments, if nobody took them.
    pub(crate) fn take(&self) -> Option<JsonObject> {
        self.0.lock().expect("no code panics while it holds arguments").take()
    }
}
