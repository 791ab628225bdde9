//! `tidings read`: reads a resource, or a filled-in template, byte for byte.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use tidings_core::Template;
use tidings_mirror::cache::ResourceContent;
use tidings_mirror::model::ResourceContents;
use tidings_mirror::odd::{Part, parts};
use tidings_mirror::{List, RequestError};

use crate::args;
use crate::present::Output;
use crate::present::body::Body;
use crate::present::content::{document, unknown};
use crate::present::save::{resource_name, save};
use crate::present::text::{harmless, size};
use crate::report::{Hint, Usage};
use crate::session::{self, Session};
use crate::values::{self, Pair};

pub(crate) async fn run(args: &args::Read) -> Result<()> {
    let (place, rest) = args.connection.place(&args.words)?;
    let Some((uri, words)) = rest.split_first() else {
        return Err(Usage::new("URI is missing")
            .hint("`tidings resources` lists the resources")
            .into());
    };
    let pairs = values::pairs(words)?;
    let is_template = uri.contains('{');
    if !is_template && !pairs.is_empty() {
        return Err(Usage::new(format!(
            "`{uri}` is not a template, so it takes no `{}`",
            pairs[0].key
        ))
        .hint("quote a template, such as 'station://module/{name}'")
        .into());
    }
    let template = is_template.then(|| filled(uri, &pairs)).transpose()?;
    let lists: &[List] = if is_template { &[List::Templates] } else { &[] };
    session::once(&args.connection, place, lists, async |session| match template {
        Some(values) => read_template(session, args, uri, values).await,
        None => read(session, args, uri).await,
    })
    .await
}

type Values = std::collections::BTreeMap<String, String>;

/// The values of a template, checked against its variables.
fn filled(template: &str, pairs: &[Pair<'_>]) -> Result<Values> {
    let parsed = Template::parse(template)
        .with_context(|| format!("reading the template `{template}`"))
        .map_err(|error| Usage::new(format!("{error:#}")))?;
    let names: Vec<_> = parsed.variables().collect();
    let values = values::texts(pairs, Some(&names))?;
    if values.is_empty() && !names.is_empty() {
        let words: Vec<_> = names.iter().map(|name| format!("`{name}=VALUE`")).collect();
        return Err(Usage::new(format!("`{template}` is a template and needs values"))
            .hint(format!("give {}", words.join(" ")))
            .into());
    }
    Ok(values)
}

async fn read(session: &Session, args: &args::Read, uri: &str) -> Result<()> {
    let mirror = session.mirror.with(args.meta.options());
    let content = mirror.read_resource(uri).await.with_context(|| format!("reading `{uri}`"));
    let content = content.map_err(|error| with_hint(error, session))?;
    if session.output.json && args.out.is_none() {
        return session.output.object(&json!({ "uri": uri, "contents": sent(&content) }));
    }
    deliver(&content, args.out.as_deref(), &session.output)
}

async fn read_template(
    session: &Session,
    args: &args::Read,
    template: &str,
    values: Values,
) -> Result<()> {
    let mut options = args.meta.options();
    // A list that could not be loaded proves nothing.
    options.unlisted_templates = args.unlisted || session.loaded(List::Templates).is_err();
    let read = session.mirror.with(options).read_from_template(template, values).await;
    let read = read.with_context(|| format!("reading `{template}`"));
    let read = read.map_err(|error| with_hint(error, session))?;
    if session.output.json && args.out.is_none() {
        return session.output.object(&json!({
            "uri": read.uri, "contents": sent(&read.content),
            "template": template, "name": read.name, "values": read.values,
        }));
    }
    deliver(&read.content, args.out.as_deref(), &session.output)
}

fn with_hint(error: anyhow::Error, session: &Session) -> anyhow::Error {
    let line = |list| session.place.line(list, &[]);
    let hint = match error.downcast_ref::<RequestError>() {
        Some(RequestError::Refused(_)) => format!("`{}` lists the resources", line("resources")),
        Some(RequestError::Unlisted(_)) => {
            format!("`{}` lists the templates; `--unlisted` reads it anyway", line("templates"))
        }
        _ => return error,
    };
    error.context(Hint(hint))
}

/// The contents as the server sent them.
fn sent(content: &ResourceContent) -> serde_json::Value {
    content.raw()["contents"].take()
}

/// Writes contents to a file, a folder, a terminal or a pipe.
fn deliver(content: &ResourceContent, out: Option<&Path>, output: &Output) -> Result<()> {
    let contents = &content.contents;
    for odd in &content.odd {
        output.remark(&format!("warning: invalid contents: {odd}"));
    }
    if let Some(path) = out {
        return write(contents, path, output);
    }
    if !output.terminal {
        for part in parts(contents, &content.odd) {
            match part {
                Part::Known(contents) => output.bytes(&Body::of(contents).bytes()?)?,
                Part::Odd(odd) => output.raw(&odd.item.to_string())?,
            }
        }
        return Ok(());
    }
    let several = contents.len() > 1;
    for part in parts(contents, &content.odd) {
        let body = match part {
            Part::Known(contents) => Body::of(contents),
            Part::Odd(odd) => {
                output.raw(&unknown(odd))?;
                continue;
            }
        };
        let Some(text) = body.text() else {
            let length = size(body.bytes()?.len());
            let kind = body.mime.unwrap_or("without a MIME type");
            return Err(anyhow!("`{}` is not text: {length}, {kind}", body.uri)
                .context(Hint("save it with `--out FILE`, or redirect the output".to_owned())));
        };
        if several {
            output.raw(&output.paint.faint(&harmless(&format!("--- {}", body.uri))))?;
        }
        output.raw(&document(text, body.mime))?;
    }
    Ok(())
}

fn write(contents: &[ResourceContents], path: &Path, output: &Output) -> Result<()> {
    if path.is_dir() {
        for body in contents.iter().map(Body::of) {
            let saved = save(path, &resource_name(body.uri, body.mime), &body.bytes()?)?;
            output.remark(&format!("saved as {}", saved.display()));
        }
        return Ok(());
    }
    let all = contents.iter().map(|it| Body::of(it).bytes()).collect::<Result<Vec<_>>>()?.concat();
    std::fs::write(path, &all).with_context(|| format!("writing `{}`", path.display()))?;
    output.remark(&format!("{} written to {}", size(all.len()), path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, words: &[&str], expected: Result<&[(&str, &str)], &str>) {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let values = filled(template, &values::pairs(&words).unwrap());
        match expected {
            Ok(pairs) => {
                let pairs =
                    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
                assert_eq!(values.unwrap(), pairs.collect());
            }
            Err(because) => {
                let error = values.unwrap_err().to_string();
                assert!(error.contains(because), "{error}");
            }
        }
    }

    #[test]
    fn a_template_takes_its_variables_and_no_others() {
        check("a:{b}{?c}", &["b=1"], Ok(&[("b", "1")]));
        check("a:{b}", &["x=1"], Err("unknown parameter `x`"));
        check("a:{b}", &[], Err("needs values"));
        check("a:{b", &["b=1"], Err("reading the template"));
    }
}
