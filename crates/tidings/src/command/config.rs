//! `tidings config`: prints a host's configuration for a server, or writes it to the host's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;

use crate::args;
use crate::folder::{existing, has_parts, quoted, server_name};
use crate::hosts::{
    CLIENTS, Client, Format, MergeError, Merged, Original, Other, Server, Surroundings, merge,
};
use crate::present::Output;
use crate::present::table::Table;
use crate::report::{Hint, Usage};

/// An entry for a host's file.
struct Plan<'a> {
    client: Client,
    name: String,
    server: Server,
    /// The file to write; `None` if the home directory is unknown.
    file: Option<PathBuf>,
    args: &'a args::Config,
    output: Output,
}

pub(crate) fn run(args: &args::Config) -> Result<()> {
    let surroundings = Surroundings::new();
    let output = Output::new(args.json);
    let named = args.client.as_deref().filter(|name| *name != args::LIST);
    let Some(client) = named.and_then(Client::named) else {
        return list(&output, &surroundings);
    };
    let plan = plan(args, client, &surroundings, output)?;
    if args.write { plan.write() } else { plan.print() }
}

fn list(output: &Output, surroundings: &Surroundings) -> Result<()> {
    if output.json {
        for client in &CLIENTS {
            output.object(&json!({
                "client": client.name, "file": client.user_file(surroundings),
                "project_file": client.project_file(surroundings),
            }))?;
        }
        return Ok(());
    }
    let shown =
        |file: Option<PathBuf>| file.map_or_else(String::new, |it| it.display().to_string());
    let mut table = Table::new(["CLIENT", "FILE", "FILE OF THIS PROJECT"]);
    for client in &CLIENTS {
        let (user, project) = (client.user_file(surroundings), client.project_file(surroundings));
        table.row([client.name.to_owned(), shown(user), shown(project)]);
    }
    output.raw(&table.render(output.width, output.paint))
}

fn plan<'a>(
    args: &'a args::Config,
    client: Client,
    surroundings: &Surroundings,
    output: Output,
) -> Result<Plan<'a>> {
    let served = Served::new(args, client, output)?;
    let name = args.name.clone().or_else(|| served.name.clone());
    let name = name.filter(|name| !name.trim().is_empty()).ok_or_else(|| {
        Usage::new("no name for the server can be derived").hint("give one with `--name NAME`")
    })?;
    // A host may search other directories than this shell, so the program's path is absolute.
    let program = std::env::current_exe().ok();
    let program = program.as_deref().map_or(Ok("tidings"), text)?.to_owned();
    let file = if args.project {
        let file = client.project_file(surroundings).ok_or_else(|| {
            Usage::new(format!("{} has no project file", client.name)).hint("leave out `--project`")
        })?;
        Some(file)
    } else {
        client.user_file(surroundings)
    };
    let server = client.server(program, served.words, served.env);
    Ok(Plan { client, name, server, file, args, output })
}

/// The options of a host's entry.
struct Served {
    words: Vec<String>,
    env: BTreeMap<String, String>,
    name: Option<String>,
}

impl Served {
    fn new(args: &args::Config, client: Client, output: Output) -> Result<Self> {
        let mut words = vec!["serve".to_owned()];
        let mut named = args.env.clone();
        let mut name = None;
        if let Some(given) = &args.folder {
            let folder = existing(given)?;
            if !has_parts(&folder) {
                output.remark(&format!(
                    "warning: `{}` has no `tools`, `resources`, `prompts` or `server.d`: nothing is served",
                    given.display()
                ));
            }
            words.extend(["--folder".to_owned(), text(&folder)?.to_owned()]);
            named.extend(needed(&folder).into_iter().filter(|it| !is_named(&args.env, it)));
            name = server_name(&folder);
        }
        words.extend(absolute(&args.serve)?);
        words.push("--stdio".to_owned());
        let mut env = BTreeMap::new();
        for variable in named {
            let (name, value) = variable.split_once('=').unzip();
            words.extend(["--env".to_owned(), name.unwrap_or(&variable).to_owned()]);
            env.extend(name.map(str::to_owned).zip(value.map(str::to_owned)));
        }
        if args.folder.is_none() && args.serve.is_empty() {
            return Err(Usage::new("DIR is missing")
                .hint(format!(
                    "give the folder to serve: `tidings config DIR --client {}`; or options of \
                     `tidings serve` after two dashes",
                    client.name
                ))
                .into());
        }
        let name = name.or_else(|| other_name(&words));
        args::check_serve(&words)?;
        Ok(Self { words, env, name })
    }
}

/// The variables that the folder's programs need.
fn needed(folder: &Path) -> Vec<String> {
    let text = std::fs::read(folder.join("server.d/server.meta.json")).unwrap_or_default();
    let meta: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let names = meta["env"].as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn is_named(variables: &[String], name: &str) -> bool {
    variables.iter().any(|it| it.split('=').next() == Some(name))
}

/// A name for a server without a folder: its workspace's, or the kind of its source.
fn other_name(words: &[String]) -> Option<String> {
    let place = words.windows(2).find(|pair| pair[0] == "--workspace" || pair[0] == "--folder");
    match place {
        Some(pair) => server_name(Path::new(&pair[1])),
        None if words.iter().any(|word| word == "--demo") => Some("demo".to_owned()),
        None => Some("feeds".to_owned()),
    }
}

/// Options whose values are paths. The host would resolve them elsewhere, so they are made
/// absolute.
const PATHS: [&str; 6] = ["--folder", "--workspace", "--opml", "--feed", "--config", "--data"];

fn absolute(words: &[String]) -> Result<Vec<String>> {
    let mut is_path = false;
    let whole = |value: &str| -> Result<String> {
        if value.contains("://") {
            return Ok(value.to_owned());
        }
        Ok(text(&std::path::absolute(value)?)?.to_owned())
    };
    words
        .iter()
        .map(|word| {
            if std::mem::replace(&mut is_path, PATHS.contains(&word.as_str())) {
                return whole(word);
            }
            match word.split_once('=').filter(|(option, _)| PATHS.contains(option)) {
                Some((option, value)) => Ok(format!("{option}={}", whole(value)?)),
                None => Ok(word.clone()),
            }
        })
        .collect()
}

fn text(path: &Path) -> Result<&str, Usage> {
    path.to_str().ok_or_else(|| {
        Usage::new(format!(
            "`{}` is not UTF-8, so it cannot be written to the host's file",
            path.display()
        ))
        .hint("rename it")
    })
}

impl Plan<'_> {
    fn snippet(&self) -> String {
        self.client.snippet(&self.name, &self.server)
    }

    fn print(&self) -> Result<()> {
        if self.output.json {
            return self.output.object(&json!({
                "client": self.client.name, "name": self.name, "file": self.file,
                "snippet": self.snippet(),
            }));
        }
        self.output.raw(&self.snippet())?;
        if let Some(file) = &self.file {
            self.output.remark(&format!("file: `{}`", file.display()));
        }
        if self.client.format == Format::Json {
            self.output.remark("add `--write` to write it");
        }
        Ok(())
    }

    fn write(&self) -> Result<()> {
        if self.client.format == Format::Toml {
            let program = std::iter::once(&self.server.command).chain(&self.server.args);
            let program: Vec<_> = program.map(|word| args::quoted(word)).collect();
            return Err(self.by_hand(
                format!(
                    "{} keeps its servers in TOML, which this command does not edit",
                    self.client.name
                ),
                format!(
                    "run `codex mcp add {} -- {}`",
                    args::quoted(&self.name),
                    program.join(" ")
                ),
            ));
        }
        let file = self.place()?;
        let original = Original::read(&file)?;
        let other = if self.args.force { Other::Replace } else { Other::Keep };
        let text = original.text().unwrap_or_default();
        let merged = merge(text, self.client.key, &self.name, &self.server, other);
        let (state, new) = match merged {
            Ok(Merged::Present) => return self.told(&file, "present", None),
            Ok(Merged::Added(new)) => ("added", new),
            Ok(Merged::Replaced(new)) => ("replaced", new),
            Err(error) => return Err(self.refused(error, &file)),
        };
        self.told(&file, state, original.replace(&new)?)
    }

    /// The file to write; its folder exists.
    fn place(&self) -> Result<PathBuf> {
        let file = self.file.clone().ok_or_else(|| {
            anyhow!("the location of {}'s file is unknown", self.client.name)
                .context(Hint("set HOME to your home directory".to_owned()))
        })?;
        let folder = file.parent().context("a file is in a folder")?;
        if self.args.project {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("creating `{}`", folder.display()))?;
        } else if !folder.is_dir() {
            let missing = format!("the folder `{}` does not exist", folder.display());
            let error = anyhow!(missing).context(format!("{} is not set up", self.client.name));
            let hint = format!(
                "start {} once, or create the folder: `mkdir -p {}`",
                self.client.name,
                quoted(folder)
            );
            return Err(error.context(Hint(hint)));
        }
        Ok(file)
    }

    /// The error for a file that was left unchanged, with a hint.
    fn refused(&self, error: MergeError, file: &Path) -> anyhow::Error {
        let left = format!("`{}` was not changed", file.display());
        match error {
            MergeError::Taken => {
                anyhow!("it has a different server `{}`", self.name).context(left).context(Hint(
                    "replace it with `--force`, or keep both with `--name NAME`".to_owned(),
                ))
            }
            MergeError::NotJson(_) | MergeError::NotAnObject(_) => {
                let hint = "correct the file, then run the command again".to_owned();
                anyhow::Error::new(error).context(left).context(Hint(hint))
            }
        }
    }

    /// Prints the entry instead of writing it, and the reason.
    fn by_hand(&self, reason: String, hint: String) -> anyhow::Error {
        let printed = if self.output.json {
            self.output.object(&json!({
                "client": self.client.name, "name": self.name, "file": self.file,
                "state": "refused", "snippet": self.snippet(),
            }))
        } else {
            self.output.raw(&self.snippet())
        };
        match printed {
            Ok(()) => anyhow!(reason).context(Hint(hint)),
            Err(error) => error,
        }
    }

    fn told(&self, file: &Path, state: &str, backup: Option<PathBuf>) -> Result<()> {
        let (name, shown) = (&self.name, file.display());
        if self.output.json {
            return self.output.object(&json!({
                "client": self.client.name, "name": name, "file": file, "state": state,
                "backup": backup,
            }));
        }
        if state == "present" {
            return self.output.raw(&format!("`{name}` is already in `{shown}`"));
        }
        self.output.raw(&format!("{state} `{name}` in `{shown}`"))?;
        if let Some(backup) = backup {
            self.output.raw(&format!("the old file was saved as `{}`", backup.display()))?;
        }
        self.output.raw(&format!("restart {} to use it", self.client.name))
    }
}
