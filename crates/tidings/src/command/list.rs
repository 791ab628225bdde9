//! `tidings tools`, `resources`, `templates`, `prompts`: a server's items as a table.

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use tidings_mirror::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_mirror::{Item, List};

use crate::args;
use crate::present::Output;
use crate::present::item::names;
use crate::present::table::Table;
use crate::schema::Fields;
use crate::session::{self, Session};

pub(crate) async fn run(args: &args::List, list: List) -> Result<()> {
    let place = args.connection.only_place(&args.words)?;
    let filter = args.filter.as_deref();
    session::once(&args.connection, place, &[list], async |session| {
        session.loaded(list)?;
        print(session, list, filter)
    })
    .await
}

fn print(session: &Session, list: List, filter: Option<&str>) -> Result<()> {
    let (mirror, output) = (&session.mirror, &session.output);
    let listed = match list {
        List::Tools => {
            show(&chosen(&mirror.tools(), filter), &["NAME", "TAKES", "DESCRIPTION"], output)
        }
        List::Resources => show(
            &chosen(&mirror.resources(), filter),
            &["URI", "NAME", "TYPE", "DESCRIPTION"],
            output,
        ),
        List::Templates => {
            let headings = &["TEMPLATE", "NAME", "TYPE", "DESCRIPTION"];
            show(&chosen(&mirror.templates(), filter), headings, output)
        }
        List::Prompts => {
            show(&chosen(&mirror.prompts(), filter), &["NAME", "TAKES", "DESCRIPTION"], output)
        }
    }?;
    let odd = mirror.odd(list);
    for odd in odd.iter() {
        if output.json {
            output.object(&json!({ "odd": odd, "list": list.as_str() }))?;
        } else {
            output.remark(&format!("warning: odd {list}: {odd}"));
        }
    }
    if let Some(reason) = mirror.incomplete(list) {
        if output.json {
            output.object(&json!({ "incomplete": reason, "list": list.as_str() }))?;
        } else {
            output.remark(&format!("warning: the {list} may be incomplete: {reason}"));
        }
    }
    if listed == 0 && odd.is_empty() {
        match filter {
            Some(filter) => output.remark(&format!("no {list} match `{filter}`")),
            None => output.remark(&format!("the server has no {list}")),
        }
    }
    Ok(())
}

fn chosen<'a, T: Row>(items: &'a [Arc<Item<T>>], filter: Option<&str>) -> Vec<&'a Item<T>> {
    let filter = filter.map(str::to_lowercase);
    let fits = |item: &&Item<T>| {
        filter.as_ref().is_none_or(|filter| {
            item.searched().iter().flatten().any(|text| text.to_lowercase().contains(filter))
        })
    };
    items.iter().map(AsRef::as_ref).filter(fits).collect()
}

/// As JSON, items are printed as the server sent them, with unknown fields.
fn show<T: Row>(items: &[&Item<T>], headings: &[&str], output: &Output) -> Result<usize> {
    if output.json {
        let lines = items.iter().map(|item| item.raw_json()).collect::<Vec<_>>();
        output.raw(&lines.join("\n"))?;
    } else if !items.is_empty() {
        let mut table = Table::with(headings.iter().map(|heading| (*heading).to_owned()).collect());
        for item in items {
            table.row(item.cells());
        }
        output.raw(&table.render(output.width, output.paint))?;
    }
    Ok(items.len())
}

/// An item as a row of a table.
trait Row: Serialize {
    fn cells(&self) -> Vec<String>;
    /// The texts that `--filter` searches.
    fn searched(&self) -> [Option<&str>; 4];
}

/// A title and a description in one cell.
fn about(title: Option<&str>, description: Option<&str>) -> String {
    match (title, description) {
        (Some(title), Some(description)) => format!("{title}: {description}"),
        (title, description) => title.or(description).unwrap_or_default().to_owned(),
    }
}

impl Row for Tool {
    fn cells(&self) -> Vec<String> {
        let title = self.title.as_deref();
        let takes = names(&Fields::of(&self.input_schema));
        vec![self.name.to_string(), takes, about(title, self.description.as_deref())]
    }

    fn searched(&self) -> [Option<&str>; 4] {
        [Some(&self.name), self.title.as_deref(), self.description.as_deref(), None]
    }
}

impl Row for Prompt {
    fn cells(&self) -> Vec<String> {
        let arguments = self.arguments.as_deref().unwrap_or_default().iter().map(|argument| {
            let mark = if argument.required == Some(true) { "" } else { "?" };
            format!("{}{mark}", argument.name)
        });
        let takes = arguments.collect::<Vec<_>>().join(", ");
        vec![self.name.clone(), takes, about(self.title.as_deref(), self.description.as_deref())]
    }

    fn searched(&self) -> [Option<&str>; 4] {
        [Some(&self.name), self.title.as_deref(), self.description.as_deref(), None]
    }
}

impl Row for Resource {
    fn cells(&self) -> Vec<String> {
        let about = about(self.title.as_deref(), self.description.as_deref());
        vec![self.uri.clone(), self.name.clone(), self.mime_type.clone().unwrap_or_default(), about]
    }

    fn searched(&self) -> [Option<&str>; 4] {
        [Some(&self.name), self.title.as_deref(), self.description.as_deref(), Some(&self.uri)]
    }
}

impl Row for ResourceTemplate {
    fn cells(&self) -> Vec<String> {
        let about = about(self.title.as_deref(), self.description.as_deref());
        let mime = self.mime_type.clone().unwrap_or_default();
        vec![self.uri_template.clone(), self.name.clone(), mime, about]
    }

    fn searched(&self) -> [Option<&str>; 4] {
        let description = self.description.as_deref();
        [Some(&self.name), self.title.as_deref(), description, Some(&self.uri_template)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_looks_at_names_titles_descriptions_and_uris() {
        let items = [
            Arc::new(Resource::new("a:Log", "x").into()),
            Arc::new(Resource::new("a:b", "y").with_description("the LOG of it").into()),
            Arc::new(Resource::new("a:c", "z").into()),
        ];
        let found =
            |filter| chosen(&items, filter).iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(found(Some("log")), ["x", "y"]);
        assert_eq!(found(None), ["x", "y", "z"]);
    }
}
