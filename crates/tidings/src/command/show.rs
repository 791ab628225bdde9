//! `tidings show`: everything about one item.

use anyhow::{Result, anyhow};
use serde::Serialize;
use tidings_mirror::{Item, List, Mirror};

use crate::args;
use crate::present::item::Frame;
use crate::report::{Hint, Usage};
use crate::session::{self, Session};
use crate::values::nearest;

pub(crate) async fn run(args: &args::Show) -> Result<()> {
    let (place, rest) = args.connection.place(&args.words)?;
    let name = match rest {
        [name] => name,
        [] => {
            return Err(Usage::new("NAME or URI is missing")
                .hint("`tidings tools` lists the tools")
                .into());
        }
        [_, more, ..] => return Err(args.connection.unexpected(more).into()),
    };
    session::once(&args.connection, place, &List::ALL, async |session| show(session, name)).await
}

fn show(session: &Session, name: &str) -> Result<()> {
    let Session { mirror, place, output } = session;
    let frame = Frame { place, width: output.width, paint: output.paint };
    let mut shown = 0;
    let mut print = |json: &dyn Fn() -> String, text: &dyn Fn() -> String| -> Result<()> {
        shown += 1;
        if output.json {
            return output.raw(&json());
        }
        if shown > 1 {
            output.raw("\n")?;
        }
        output.raw(&text())
    };
    for tool in mirror.tools().iter().filter(|tool| tool.name == name) {
        print(&|| raw(tool), &|| frame.tool(tool))?;
    }
    for prompt in mirror.prompts().iter().filter(|prompt| prompt.name == name) {
        print(&|| raw(prompt), &|| frame.prompt(prompt))?;
    }
    let (resources, templates) = (mirror.resources(), mirror.templates());
    for resource in resources.iter().filter(|resource| resource.uri == name) {
        print(&|| raw(resource), &|| frame.resource(resource))?;
    }
    for template in templates.iter().filter(|template| template.uri_template == name) {
        print(&|| raw(template), &|| frame.template(template))?;
    }
    if shown > 0 {
        return Ok(());
    }
    // A resource is identified by its URI, but people remember its name.
    let mut print = |json: String, text: String| -> Result<()> {
        shown += 1;
        output.raw(&if output.json { json } else { text })
    };
    for resource in resources.iter().filter(|resource| resource.name == name) {
        print(raw(resource), frame.resource(resource))?;
    }
    for template in templates.iter().filter(|template| template.name == name) {
        print(raw(template), frame.template(template))?;
    }
    if shown > 0 { Ok(()) } else { Err(nothing(session, name)) }
}

/// The item as the server sent it, with unknown fields.
fn raw<T: Serialize>(item: &Item<T>) -> String {
    item.raw_json()
}

/// The error for an unknown name. If a list could not be loaded, that is the error.
fn nothing(session: &Session, name: &str) -> anyhow::Error {
    if let Some(failed) = List::ALL.into_iter().find_map(|list| session.loaded(list).err()) {
        return failed;
    }
    let known = known(&session.mirror);
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    let hint = match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`{}` lists the tools", session.place.line("tools", &[])),
    };
    anyhow!("the server has no item `{name}`").context(Hint(hint))
}

fn known(mirror: &Mirror) -> Vec<String> {
    let tools = mirror.tools().iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
    let prompts = mirror.prompts().iter().map(|prompt| prompt.name.clone()).collect::<Vec<_>>();
    let resources = mirror.resources().iter().map(|it| it.uri.clone()).collect::<Vec<_>>();
    let templates = mirror.templates().iter().map(|it| it.uri_template.clone()).collect::<Vec<_>>();
    [tools, prompts, resources, templates].concat()
}
