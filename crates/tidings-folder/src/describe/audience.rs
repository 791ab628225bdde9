//! Audiences: the labels of the clients that an item is for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tidings_server::{LabelError, Labels};

use super::Describer;
use super::head::is_near;
use super::tool::DescriptionText;
use crate::Problem;

/// Labels as they are written: one text, or a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WrittenLabels {
    One(String),
    Many(Vec<String>),
}

impl WrittenLabels {
    pub(super) fn labels(&self) -> Result<Labels, LabelError> {
        match self {
            Self::One(text) => Labels::parse(text),
            Self::Many(texts) => Labels::new(texts),
        }
    }
}

impl Describer<'_> {
    /// The audience in a description, empty for everyone; `None` after a rejection. An audience
    /// that cannot be read, or is misspelt, must not open the item to everyone.
    pub(super) fn audience(
        &mut self,
        given: Option<&Value>,
        unknown: &BTreeMap<String, Value>,
        written: &DescriptionText<'_>,
    ) -> Option<Labels> {
        if let Some(misspelt) = unknown.keys().find(|key| is_near(key, "audience")) {
            let reason = format!("`{misspelt}` means nothing here, so the item is not offered");
            let problem = Problem::error(written.file, reason, "write `audience`");
            self.reject(Problem { line: written.at(misspelt), ..problem });
            return None;
        }
        let Some(given) = given else { return Some(Labels::NONE) };
        let labels = WrittenLabels::deserialize(given).map_or_else(
            |_| Err("it must be a label, or a list of labels".to_owned()),
            |labels| labels.labels().map_err(|error| error.to_string()),
        );
        let reason = match labels {
            Ok(labels) if !labels.is_empty() => return Some(labels),
            Ok(_) => "it has no label".to_owned(),
            Err(reason) => reason,
        };
        let reason = format!("`audience` is wrong: {reason}");
        let advice = "write `\"audience\": [\"role:admin\"]`, or leave it out for everyone";
        let problem = Problem::error(written.file, reason, advice);
        self.reject(Problem { line: written.at("audience"), ..problem });
        None
    }
}
