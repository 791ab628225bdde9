//! Resources from a provider: a program that gets the URI and prints the content.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use tidings_server::model::ResourceContents;
use tidings_server::{AnswerError, Contents, ResourceUri};

use crate::offer::{Patience, Program};
use crate::script::{self, Ending, Run};
use crate::workshop::Workshop;

/// The built-in scheme whose resources contain what their URIs say.
pub(crate) const ECHO: &str = "echo";
/// Time limit of a provider.
const LIMIT: Duration = Duration::from_secs(30);
/// The caller name under which providers queue.
const CALLER: &str = "providers";

/// Reads a resource through its provider.
///
/// # Errors
///
/// The error that the provider's exit code stands for, or the program could not be run.
pub(crate) async fn read(
    workshop: &Workshop,
    program: &Program,
    uri: &ResourceUri,
    mime_type: Option<&str>,
) -> Result<Contents, AnswerError> {
    let turn = workshop.queue.enter(CALLER).await;
    let _permit = turn.map_err(|full| AnswerError::Unavailable(full.to_string()))?;
    let mut job = workshop.job(program, &workshop.root, Patience::fixed(LIMIT));
    job.arguments = vec![uri.as_ref().into()];
    job.environment.push(("MCP_RESOURCE_URI".into(), uri.as_ref().into()));
    let resources = workshop.root.join("resources");
    job.environment.push(("MCP_RESOURCES_ROOTS".into(), resources.into()));
    job.output_limit = usize::try_from(workshop.limits.resource).unwrap_or(usize::MAX);
    let run = script::run(job, |_| std::future::ready(()))
        .await
        .map_err(|error| AnswerError::Failed(error.within(&workshop.root).to_string()))?;
    match run.ending {
        Ending::Code(0) => Ok(contents(uri, run.output, mime_type)),
        _ => Err(refusal(workshop, uri, &run)),
    }
}

pub(crate) fn contents(uri: &ResourceUri, output: Vec<u8>, mime_type: Option<&str>) -> Contents {
    let part = match String::from_utf8(output) {
        Ok(text) => ResourceContents::text(text, uri.as_ref())
            .with_mime_type(mime_type.unwrap_or("text/plain")),
        Err(binary) => ResourceContents::blob(STANDARD.encode(binary.into_bytes()), uri.as_ref())
            .with_mime_type(mime_type.unwrap_or("application/octet-stream")),
    };
    Contents::new(vec![part])
}

fn refusal(workshop: &Workshop, uri: &ResourceUri, run: &Run) -> AnswerError {
    let uri = uri.as_ref();
    let said = run.errors.lines().next_back().map(str::trim).filter(|line| !line.is_empty());
    let with = |text: &str| said.map_or_else(|| text.to_owned(), |said| format!("{text}: {said}"));
    match run.ending {
        Ending::Code(2) => AnswerError::invalid("uri", uri, with("it is not allowed to read this")),
        Ending::Code(3) => AnswerError::not_found(uri),
        Ending::Code(4) => AnswerError::invalid("uri", uri, with("the provider takes no such URI")),
        Ending::Code(5) => AnswerError::Unavailable(with("the provider could not get it now")),
        Ending::Code(6) => AnswerError::Failed(with("the resource is too large")),
        Ending::Code(code) => AnswerError::Failed(with(&format!("the provider failed ({code})"))),
        Ending::Signal(signal) => {
            AnswerError::Failed(with(&format!("the provider was ended by signal {signal}")))
        }
        Ending::TimedOut(_) => {
            let limit = LIMIT.as_secs();
            AnswerError::Unavailable(with(&format!("the provider took longer than {limit} s")))
        }
        Ending::TooMuchOutput => {
            let limit = workshop.limits.resource;
            AnswerError::Failed(format!("the resource is too large: more than {limit} bytes"))
        }
    }
}

/// The content of an [`ECHO`] URI.
pub(crate) fn echo(uri: &ResourceUri, mime_type: Option<&str>) -> Contents {
    let rest = uri.as_ref().split_once(':').map_or("", |(_, rest)| rest);
    let said = percent_decode_str(rest.strip_prefix("//").unwrap_or(rest));
    contents(uri, said.collect(), mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    async fn check(script: &str) -> Result<Contents, AnswerError> {
        let mut fixture = Fixture::new();
        fixture.config.limits.resource = 1000;
        let program = fixture.script("providers/any.sh", script);
        let uri = ResourceUri::parse("any://one/two").unwrap();
        read(&fixture.workshop(), &program, &uri, None).await
    }

    #[tokio::test]
    async fn a_provider_gets_the_uri_and_prints_the_content() {
        let found =
            check("printf '%s %s' \"$1\" \"${MCP_RESOURCES_ROOTS#\"$PWD\"}\"").await.unwrap();
        let uri = ResourceUri::parse("any://one/two").unwrap();
        assert_eq!(found, Contents::text(&uri, "any://one/two /resources"));
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_a_blob() {
        let found = check("printf '\\377'").await.unwrap();
        let expected = ResourceContents::blob("/w==", "any://one/two");
        assert_eq!(found.parts, [expected.with_mime_type("application/octet-stream")]);
    }

    #[tokio::test]
    async fn the_exit_code_says_what_is_wrong() {
        let refused = async |code: u8| {
            check(&format!("echo first >&2; echo why >&2; exit {code}")).await.unwrap_err()
        };
        let invalid = |details: &str| AnswerError::invalid("uri", "any://one/two", details);
        assert_eq!(refused(2).await, invalid("it is not allowed to read this: why"));
        assert_eq!(refused(3).await, AnswerError::not_found("any://one/two"));
        assert_eq!(refused(4).await, invalid("the provider takes no such URI: why"));
        let unavailable = "the provider could not get it now: why".to_owned();
        assert_eq!(refused(5).await, AnswerError::Unavailable(unavailable));
        let failed = |text: &str| AnswerError::Failed(text.to_owned());
        assert_eq!(refused(6).await, failed("the resource is too large: why"));
        assert_eq!(refused(9).await, failed("the provider failed (9): why"));
    }

    #[tokio::test]
    async fn a_resource_without_end_is_too_large() {
        let failed = "the resource is too large: more than 1000 bytes".to_owned();
        assert_eq!(check("yes").await, Err(AnswerError::Failed(failed)));
    }
}
