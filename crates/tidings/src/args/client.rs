//! What the client commands are told.

use std::path::PathBuf;
use std::time::Duration;

use clap_complete::Shell;
use tidings_mirror::RequestOptions;

use crate::args::connection::{Connection, Places, duration};
use crate::values;

/// What is sent along with a request.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Meta {
    /// Send this in the `_meta` of the request; may be repeated. The value is JSON, or else a text.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) meta: Vec<(String, String)>,
}

impl Meta {
    pub(crate) fn options(&self) -> RequestOptions {
        let add = |options: RequestOptions, (key, value): &(String, String)| {
            options.meta(key, values::guess(value))
        };
        self.meta.iter().fold(RequestOptions::new(), add)
    }
}

/// A key and its value. Unlike a variable, a key alone says nothing.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// What a list command is told.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// The server: a URL, or a name from an mcp.json.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    /// List only what has this text in its name, title, description or URI.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Show one tool, prompt, resource or template whole, with an example of its use.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings show [OPTIONS] TARGET NAME|URI\n       tidings show [OPTIONS] NAME|URI -- COMMAND [ARGUMENT]...",
    after_help = "Example:\n  tidings show dock_module -- tidings serve --demo --stdio"
)]
pub(crate) struct Show {
    /// The server, and the name or URI of what to show.
    #[arg(value_name = "TARGET NAME|URI")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Call a tool.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings call [OPTIONS] TARGET TOOL [KEY=VALUE]...\n       tidings call [OPTIONS] TOOL [KEY=VALUE]... -- COMMAND [ARGUMENT]...",
    after_help = "\
A value is read as the type that the tool's schema declares; `tidings show` tells it. `a.b=1` sets
`b` inside `a`, and a key that is given again adds to an array. JSON is taken for arrays and objects.

Example:
  tidings call dock_module module=iris -- tidings serve --demo --stdio"
)]
pub(crate) struct Call {
    /// The server, the tool, and its arguments.
    #[arg(value_name = "TARGET TOOL KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Arguments as a JSON object: the text itself, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) args: Option<String>,
    /// Save images, audio and embedded resources in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) meta: Meta,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Read a resource, or fill in a template and read that.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings read [OPTIONS] TARGET URI\n       tidings read [OPTIONS] TARGET TEMPLATE [KEY=VALUE]...\n       tidings read [OPTIONS] URI|TEMPLATE [KEY=VALUE]... -- COMMAND [ARGUMENT]...",
    after_help = "\
Examples:
  tidings read station://log -- tidings serve --demo --stdio
  tidings read 'station://module/{name}' name=aurora -- tidings serve --demo --stdio"
)]
pub(crate) struct Read {
    /// The server, the URI, or a template and its values.
    #[arg(value_name = "TARGET URI|TEMPLATE KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Write the content to this file, byte for byte; into it, if it is a folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Read a template even if the server does not list it.
    #[arg(long)]
    pub(crate) unlisted: bool,
    #[command(flatten)]
    pub(crate) meta: Meta,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Fill in a prompt.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings prompt [OPTIONS] TARGET NAME [KEY=VALUE]...\n       tidings prompt [OPTIONS] NAME [KEY=VALUE]... -- COMMAND [ARGUMENT]...",
    after_help = "Example:\n  tidings prompt station_report focus=aurora -- tidings serve --demo --stdio"
)]
pub(crate) struct Prompt {
    /// The server, the prompt, and its arguments.
    #[arg(value_name = "TARGET NAME KEY=VALUE")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) meta: Meta,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Ask what an argument of a prompt or a template could be.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings complete [OPTIONS] TARGET prompt NAME ARGUMENT=PREFIX [OTHER=VALUE]...\n       tidings complete [OPTIONS] TARGET template TEMPLATE ARGUMENT=PREFIX [OTHER=VALUE]...",
    after_help = "\
The first pair is the argument to complete and what is there of it already; further pairs are the
arguments that are known. The server may come last, as in the example.

Example:
  tidings complete prompt station_report focus=a -- tidings serve --demo --stdio"
)]
pub(crate) struct Complete {
    /// The server, what has the argument, the argument, and what is known of the others.
    #[arg(value_name = "TARGET prompt|template NAME ARGUMENT=PREFIX")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Follow a server: a line for each change.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings watch [OPTIONS] TARGET [URI]...\n       tidings watch [OPTIONS] [URI]... -- COMMAND [ARGUMENT]...",
    after_help = "\
Without a URI the lists are followed: tools, resources, templates and prompts. A resource that
disappears is a change, and so is its return. It goes on when the server restarts, and tells what
changed meanwhile. Ctrl-C ends it, with the commands it runs.

Example:
  tidings watch station://log --until 3 -- tidings serve --demo --stdio --every 0.2"
)]
pub(crate) struct Watch {
    /// The server, and the resources to follow.
    #[arg(value_name = "TARGET URI")]
    pub(crate) words: Vec<String>,
    /// Follow the lists as well as the given URIs.
    #[arg(long)]
    pub(crate) lists: bool,
    /// Run this with `sh -c` for each change, with the change as JSON on its standard input.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// End after so many changes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) until: Option<u64>,
    /// End after so long, as `30s` or `5m`.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Tell who a server is, what it can do, and how fast it answers.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings info [OPTIONS] TARGET\n       tidings info [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = "Example:\n  tidings info -- tidings serve --demo --stdio"
)]
pub(crate) struct Info {
    /// The server: a URL, or a name from an mcp.json.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List the servers that the mcp.json files of well-known hosts name.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings servers")]
pub(crate) struct Servers {
    #[command(flatten)]
    pub(crate) places: Places,
    /// Print one JSON object a line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings completions bash")]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: Shell,
}

/// Print the manual page, or write those of all commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings man")]
pub(crate) struct Man {
    /// A folder to write all pages into.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_is_never_taken_from_the_environment() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("PATH").is_err() && pair("=b").is_err());
    }
}
