//! One content of a resource, in any form.

use anyhow::{Result, bail};
use tidings_mirror::model::ResourceContents;

use crate::present::save::decoded;

/// One content of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) uri: &'a str,
    pub(crate) mime: Option<&'a str>,
    form: Form<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Text(&'a str),
    Blob(&'a str),
    /// An unknown form.
    Unknown,
}

impl<'a> Body<'a> {
    pub(crate) fn of(contents: &'a ResourceContents) -> Self {
        match contents {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Self { uri, mime: mime_type.as_deref(), form: Form::Text(text) }
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                Self { uri, mime: mime_type.as_deref(), form: Form::Blob(blob) }
            }
            _ => Self { uri: "", mime: None, form: Form::Unknown },
        }
    }

    /// The text, if it came as text.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match self.form {
            Form::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, in whatever form they came.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        match self.form {
            Form::Text(text) => Ok(text.as_bytes().to_vec()),
            Form::Blob(blob) => decoded(blob),
            Form::Unknown => bail!("the server sent content in an unknown form"),
        }
    }
}
