//! `tidings new`: creates template files, and prints the next commands.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::args::{self, NewItem, Shape};
use crate::folder::scaffold::{self, Piece};
use crate::folder::{existing, has_parts, quoted, server_name};
use crate::present::Output;
use crate::present::text::harmless;
use crate::report::Usage;

/// The default endpoint of `tidings serve`.
const ENDPOINT: &str = "http://127.0.0.1:8484/mcp";

pub(crate) fn run(args: &args::New) -> Result<()> {
    let output = Output::new(args.json);
    match &args.what {
        NewItem::Folder { folder } => {
            let made = whole(folder)?;
            tell(&output, folder, &made, &after_folder(folder))
        }
        NewItem::Tool { name, into, single, language } => {
            let folder = known(&into.folder)?;
            let shape = if *single { Shape::Single } else { Shape::Directory };
            let made = scaffold::tool(name, *language, shape)?;
            if let Some(other) = scaffold::tool_in_the_way(folder, name) {
                return Err(scaffold::taken(&folder.join(other)).into());
            }
            scaffold::make(folder, &made)?;
            let next = [format!("tidings run {} {name} text=hello", quoted(folder))];
            tell(&output, folder, &made, &next)
        }
        NewItem::Prompt { name, into } => {
            let folder = known(&into.folder)?;
            let made = scaffold::prompt(name)?;
            scaffold::make(folder, &made)?;
            let next = [format!("tidings prompt {name} topic=tea {}", served(folder))];
            tell(&output, folder, &made, &next)
        }
        NewItem::Resource { name, into } => {
            let folder = known(&into.folder)?;
            let made = scaffold::resource(name)?;
            scaffold::make(folder, &made)?;
            tell(&output, folder, &made, &[format!("tidings resources {}", served(folder))])
        }
    }
}

fn served(folder: &Path) -> String {
    format!("-- tidings serve --folder {} --stdio", quoted(folder))
}

/// Creates a folder where nothing exists yet.
fn whole(folder: &Path) -> Result<Vec<Piece>> {
    let shown = folder.display();
    if folder.exists() && !folder.is_dir() {
        return Err(scaffold::taken(folder).into());
    }
    if folder.is_dir() {
        let mut entries =
            std::fs::read_dir(folder).with_context(|| format!("reading `{shown}`"))?;
        // A new repository counts as empty.
        if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != ".git")) {
            return Err(Usage::new(format!("`{shown}` is not empty"))
                .hint(
                    "give a folder that does not exist; `tidings new tool NAME --folder DIR` \
                     adds to an existing one",
                )
                .into());
        }
    }
    std::fs::create_dir_all(folder).with_context(|| format!("creating `{shown}`"))?;
    let name = server_name(&existing(folder)?).unwrap_or_else(|| "folder".to_owned());
    let made = scaffold::example(&name);
    scaffold::make(folder, &made)?;
    Ok(made)
}

/// A folder that an item can be added to.
fn known(folder: &Path) -> Result<&Path> {
    existing(folder)?;
    if has_parts(folder) {
        return Ok(folder);
    }
    let shown = folder.display();
    Err(Usage::new(format!(
        "`{shown}` does not look like a folder to serve: it has no `tools`, `resources`, \
         `prompts` or `server.d`"
    ))
    .hint("give one with `--folder DIR`; `tidings new folder DIR` creates one")
    .into())
}

fn after_folder(folder: &Path) -> Vec<String> {
    let folder = quoted(folder);
    vec![
        format!("tidings run {folder} greet name=Ada"),
        format!("tidings serve --folder {folder}"),
        format!("tidings watch {ENDPOINT} notes://all"),
        format!("tidings call {ENDPOINT} note text=hello"),
    ]
}

fn tell(output: &Output, folder: &Path, made: &[Piece], next: &[String]) -> Result<()> {
    if output.json {
        let files: Vec<_> = made.iter().map(|piece| &piece.path).collect();
        return output.object(&json!({ "folder": folder, "files": files }));
    }
    let mut text = String::new();
    for piece in made {
        let path = folder.join(&piece.path);
        let path = path.strip_prefix(".").unwrap_or(&path).display().to_string();
        _ = writeln!(text, "created {}", harmless(&path));
    }
    text.push_str("next:\n");
    for line in next {
        _ = writeln!(text, "  {}", harmless(line));
    }
    output.raw(&text)
}
