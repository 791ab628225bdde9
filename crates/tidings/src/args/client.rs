//! Options of the client commands.

use std::path::PathBuf;
use std::time::Duration;

use clap_complete::Shell;
use tidings_mirror::RequestOptions;

use crate::args::connection::{Connection, Places, duration};
use crate::values;

/// Metadata that is sent with a request.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Meta {
    /// Add a key to the `_meta` of the request; may be repeated. The value is JSON if it parses as
    /// JSON, otherwise text.
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

/// Parses a key and its value. A key without a value is refused.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Options of a list command.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Server: a URL, a name from an mcp.json, or a session of the console as `@NAME`.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    /// List only items with this text in their name, title, description or URI.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Show everything about one tool, prompt, resource or template, with an example call.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings show [OPTIONS] TARGET NAME|URI\n       tidings show [OPTIONS] NAME|URI -- COMMAND [ARGUMENT]...",
    after_help = "Example:\n  tidings show dock_module -- tidings serve --demo --stdio"
)]
pub(crate) struct Show {
    /// Server, and the name or URI of the item.
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
Values are converted to the types of the tool's schema, which `tidings show` prints. `a.b=1` sets
`b` inside `a`. Repeating a key adds to an array. Arrays and objects may be written as JSON.

Example:
  tidings call dock_module module=iris -- tidings serve --demo --stdio"
)]
pub(crate) struct Call {
    /// Server, tool, and its arguments.
    #[arg(value_name = "TARGET TOOL KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Arguments as a JSON object: the JSON itself, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) args: Option<String>,
    /// Save images, audio and embedded resources to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) meta: Meta,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Read a resource, or a template with its values filled in.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings read [OPTIONS] TARGET URI\n       tidings read [OPTIONS] TARGET TEMPLATE [KEY=VALUE]...\n       tidings read [OPTIONS] URI|TEMPLATE [KEY=VALUE]... -- COMMAND [ARGUMENT]...",
    after_help = "\
Examples:
  tidings read station://log -- tidings serve --demo --stdio
  tidings read 'station://module/{name}' name=aurora -- tidings serve --demo --stdio"
)]
pub(crate) struct Read {
    /// Server, and a URI, or a template and its values.
    #[arg(value_name = "TARGET URI|TEMPLATE KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Write the content to this file, byte for byte. If it is a folder, write a file inside it.
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

/// Fill in a prompt and print its messages.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings prompt [OPTIONS] TARGET NAME [KEY=VALUE]...\n       tidings prompt [OPTIONS] NAME [KEY=VALUE]... -- COMMAND [ARGUMENT]...",
    after_help = "Example:\n  tidings prompt station_report focus=aurora -- tidings serve --demo --stdio"
)]
pub(crate) struct Prompt {
    /// Server, prompt, and its arguments.
    #[arg(value_name = "TARGET NAME KEY=VALUE")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) meta: Meta,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List possible values of a prompt or template argument.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings complete [OPTIONS] TARGET prompt NAME ARGUMENT=PREFIX [OTHER=VALUE]...\n       tidings complete [OPTIONS] TARGET template TEMPLATE ARGUMENT=PREFIX [OTHER=VALUE]...",
    after_help = "\
The first pair is the argument to complete and the beginning of its value. Further pairs are
arguments whose values are known. The server may come last, as in the example.

Example:
  tidings complete prompt station_report focus=a -- tidings serve --demo --stdio"
)]
pub(crate) struct Complete {
    /// Server, prompt or template, the argument to complete, and known arguments.
    #[arg(value_name = "TARGET prompt|template NAME ARGUMENT=PREFIX")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Watch a server, and print a line for each change.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings watch [OPTIONS] TARGET [URI]...\n       tidings watch [OPTIONS] [URI]... -- COMMAND [ARGUMENT]...",
    after_help = "\
Without a URI, the lists of tools, resources, templates and prompts are watched. A resource that
disappears or returns is a change. If the server restarts, the command reconnects and prints what
changed meanwhile. Ctrl-C ends it and the commands it started.

Example:
  tidings watch station://log --until 3 -- tidings serve --demo --stdio --every 0.2"
)]
pub(crate) struct Watch {
    /// Server, and the URIs to watch.
    #[arg(value_name = "TARGET URI")]
    pub(crate) words: Vec<String>,
    /// Watch the lists as well as the given URIs.
    #[arg(long)]
    pub(crate) lists: bool,
    /// Run this command with `sh -c` for each change, with the change as JSON on its standard
    /// input.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// Exit after this many changes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) until: Option<u64>,
    /// Exit after this time, such as `30s` or `5m`.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Print a server's name, versions, capabilities and response times.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings info [OPTIONS] TARGET\n       tidings info [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = "Example:\n  tidings info -- tidings serve --demo --stdio"
)]
pub(crate) struct Info {
    /// Server: a URL, a name from an mcp.json, or a session of the console as `@NAME`.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List the servers in the mcp.json files of well-known hosts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings servers")]
pub(crate) struct Servers {
    #[command(flatten)]
    pub(crate) places: Places,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print shell completions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings completions bash")]
pub(crate) struct Completions {
    /// Shell to print completions for.
    pub(crate) shell: Shell,
}

/// Print the manual page, or write the pages of all commands.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings man")]
pub(crate) struct Man {
    /// Write all pages to this folder.
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
