//! The command line as clap types.

mod check;
mod client;
mod connection;
mod feeds;
mod folder;
mod import;
mod limits;
mod open;
pub(crate) mod protocol;
mod serve;
mod token;
mod upstream;
mod version;
mod workspace;

use clap::{Parser, Subcommand, ValueEnum};

use crate::report::Usage;

pub(crate) use self::check::CheckServer;
pub(crate) use self::client::{
    Call, Complete, Completions, Info, List, Man, Prompt, Read, Servers, Show, Watch,
};
pub(crate) use self::connection::{
    Connection, Header, HeaderValue, Place, Places, duration, named, quoted,
};
pub(crate) use self::feeds::{
    ExportFormat, Feeds, FeedsAdd, FeedsCommand, FeedsExport, FeedsHealth, FeedsImport, FeedsLs,
    FeedsNamed, FeedsParse, FeedsPlace, FeedsRefresh,
};
pub(crate) use self::folder::{Config, LIST, Language, Lint, New, NewItem, Run, Shape};
pub(crate) use self::import::Import;
pub(crate) use self::limits::Limits;
pub(crate) use self::open::Open;
pub(crate) use self::serve::Serve;
pub(crate) use self::token::{Token, TokenCommand, TokenLs, TokenNew, TokenRm};
pub(crate) use self::upstream::{Upstream, UpstreamCommand};
pub(crate) use self::workspace::{
    Select, Workspace, WorkspaceCommand, WorkspaceExport, WorkspaceFile, WorkspaceGc,
    WorkspaceImport, WorkspaceList, WorkspaceLog, WorkspaceShow, WorkspaceTag,
};

/// Keeps MCP clients and servers in step.
#[derive(Debug, Parser)]
#[command(version = version::SHORT.as_str(), long_version = version::LONG.as_str())]
#[command(arg_required_else_help = true, after_help = WAY_IN)]
pub(crate) struct Args {
    /// Log lines of this level and above, on standard error.
    #[arg(long, global = true, value_enum, default_value_t = LogLevel::Warn)]
    pub(crate) log: LogLevel,
    /// Format of log lines.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const WAY_IN: &str = "\
Start here: tidings serve --demo
Then, from another terminal: tidings watch http://127.0.0.1:8484/mcp station://log

TARGET is an http:// or https:// URL, or the name of a server in an mcp.json; `tidings servers`
lists the names. `@NAME` is a session of the console that `tidings open` started. To start a server yourself, leave out TARGET and put its command after two dashes:
  tidings tools -- tidings serve --demo --stdio";

/// Which log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
}

impl Command {
    /// Whether each request is logged.
    pub(crate) fn logs_access(&self) -> bool {
        matches!(self, Self::Serve(serve) if serve.access_log)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<Serve>),
    New(New),
    Run(Run),
    Lint(Lint),
    Config(Config),
    /// List the tools of a server.
    #[command(
        override_usage = "tidings tools [OPTIONS] TARGET\n       tidings tools [OPTIONS] -- COMMAND [ARGUMENT]...",
        after_help = "Example:\n  tidings tools --filter dock -- tidings serve --demo --stdio"
    )]
    Tools(List),
    /// List the resources of a server.
    #[command(
        override_usage = "tidings resources [OPTIONS] TARGET\n       tidings resources [OPTIONS] -- COMMAND [ARGUMENT]...",
        after_help = "Example:\n  tidings resources -- tidings serve --demo --stdio"
    )]
    Resources(List),
    /// List the resource templates of a server.
    #[command(
        override_usage = "tidings templates [OPTIONS] TARGET\n       tidings templates [OPTIONS] -- COMMAND [ARGUMENT]...",
        after_help = "Example:\n  tidings templates -- tidings serve --demo --stdio"
    )]
    Templates(List),
    /// List the prompts of a server.
    #[command(
        override_usage = "tidings prompts [OPTIONS] TARGET\n       tidings prompts [OPTIONS] -- COMMAND [ARGUMENT]...",
        after_help = "Example:\n  tidings prompts -- tidings serve --demo --stdio"
    )]
    Prompts(List),
    Show(Show),
    Call(Call),
    Read(Read),
    Prompt(Prompt),
    Complete(Complete),
    Watch(Watch),
    Check(Box<CheckServer>),
    Open(Box<Open>),
    Info(Info),
    Servers(Servers),
    Feeds(Feeds),
    Workspace(Workspace),
    Token(Token),
    Upstream(Upstream),
    Import(Import),
    Completions(Completions),
    Man(Man),
    /// End the programs of a killed server; servers start this themselves.
    #[command(hide = true)]
    Keep,
}

/// Refuses words that are not options of `tidings serve`.
pub(crate) fn check_serve(words: &[String]) -> Result<(), Usage> {
    let line = std::iter::once("tidings").chain(words.iter().map(String::as_str));
    let Err(error) = Args::try_parse_from(line) else { return Ok(()) };
    let said = error.to_string();
    // The first paragraph is the error; usage and hints follow after an empty line.
    let said = said.split("\n\n").next().unwrap_or_default();
    let said: Vec<_> = said.split_whitespace().collect();
    let said = said.join(" ");
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    Err(Usage::new(said).hint("`tidings serve --help` lists all options"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[track_caller]
    fn refused(line: &str, because: &str) {
        let error = Args::try_parse_from(line.split_whitespace()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(because), "{error}");
    }

    #[test]
    fn wrong_usage_is_said_in_words() {
        refused("tidings serve --demo --every 0", "0.01 to 3600");
        refused("tidings serve --demo --stdio --http 127.0.0.1:1", "cannot be used with");
        refused("tidings serve --demo --http nowhere", "invalid socket address");
        refused("tidings serve --every 1", "--demo");
        refused("tidings tools x --timeout soon", "500ms");
        refused("tidings tools x --timeout 0s", "longer than 0");
        refused("tidings tools x --protocol 1999-01-01", "auto, legacy, modern, 2024-11-05");
        refused("tidings tools x --header nonsense", "NAME:VALUE");
        refused("tidings tools x --env nonsense", "NAME=VALUE");
        refused("tidings serve --folder x --env =y", "NAME or NAME=VALUE");
        refused("tidings watch x --until 0", "0 is not in");
        refused("tidings new tool x --language cobol", "sh, python");
        refused("tidings config x --client cursr", "cursor");
        refused("tidings serve --feed x --data y --in-memory", "cannot be used with");
        refused("tidings feeds add", "URL");
        refused("tidings feeds add x --interval often", "500ms");
        refused("tidings feeds rm", "ID|URL");
        refused("tidings feeds export --format xls", "opml, rss, atom, json, csv");
        refused("tidings config x --write", "--client");
        refused("tidings config x --client cursor --force", "--write");
        refused("tidings serve --demo --blob-limit 1MB", "--workspace");
        refused("tidings workspace x log --type artifact.made", "artifact.created");
        refused("tidings token new", "NAME");
        refused("tidings token new a/b", "letters, digits");
        refused("tidings token new a --label a,b", "comma");
        refused("tidings token new a --expires soon", "30d");
        refused("tidings token new a --sessions 0", "greater than 0");
        refused("tidings workspace x import y --blob-limit much", "64MiB");
    }

    #[test]
    fn every_command_about_feeds_and_tokens_ends_its_help_with_an_example() {
        let mut all = Args::command();
        for about in ["feeds", "token"] {
            for command in all.find_subcommand_mut(about).unwrap().get_subcommands_mut() {
                let name = command.get_name().to_owned();
                let help = command.render_long_help().to_string();
                let examples = help.split("Example").nth(1).unwrap_or_default();
                assert!(examples.contains(&format!("tidings {about} {name}")), "{name}: {help}");
            }
        }
    }

    #[test]
    fn every_subcommand_ends_its_help_with_an_example() {
        let mut command = Args::command();
        let shown = command.get_subcommands_mut().filter(|command| !command.is_hide_set());
        for command in shown {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            let examples = help.split("Example").nth(1).unwrap_or_default();
            assert!(examples.contains(&format!(" tidings {name}")), "{name}: {help}");
        }
    }
}
