//! `tidings import`: write the servers of a host into `tidings.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;

use crate::args;
use crate::hosts::{
    Client, Format, Kind, Merged, NamedServer, Original, Other, Surroundings, merge, toml_key,
    toml_text, upstream_name, without,
};
use crate::present::Output;
use crate::report::{Hint, Usage};
use crate::settings::Settings;

/// The name of our entry in a host's file.
const OURSELVES: &str = "tidings";

pub(crate) fn run(args: &args::Import) -> Result<()> {
    let surroundings = Surroundings::new();
    let client = Client::named(&args.host).context("the command line takes only known hosts")?;
    let file = host_file(args, client, &surroundings)?;
    let found = surroundings.read(&file)?;
    let output = Output::new(args.json);
    for problem in &found.problems {
        output.remark(&format!("warning: {problem}"));
    }
    let servers: Vec<_> = found.entries.iter().filter(|entry| is_wanted(entry)).collect();
    if servers.is_empty() {
        let hint = Hint("`tidings servers` lists the servers of all hosts".to_owned());
        return Err(anyhow!("`{}` has no servers to import", file.display()).context(hint));
    }
    let mut imported = Imported::default();
    imported.write(&servers, &args.config)?;
    if args.replace {
        imported.replace(args, client, &file, &servers)?;
    }
    imported.report(args, &file, &output)
}

/// The host's file.
fn host_file(args: &args::Import, client: Client, surroundings: &Surroundings) -> Result<PathBuf> {
    if client.format == Format::Toml {
        let usage = Usage::new(format!("{} keeps its servers in TOML", client.name));
        return Err(usage
            .hint("copy them to `[upstream.NAME]` by hand: the keys are alike")
            .into());
    }
    let file = if args.project {
        client.project_file(surroundings)
    } else {
        client.user_file(surroundings)
    };
    file.ok_or_else(|| {
        let usage = Usage::new(format!("the location of {}'s file is unknown", client.name));
        usage.hint("leave out `--project`, or set HOME").into()
    })
}

/// Whether a server is one to import: not disabled, and not `tidings serve` itself.
fn is_wanted(entry: &NamedServer) -> bool {
    let is_ours = match &entry.kind {
        Kind::Command { program, arguments, .. } => {
            Path::new(program).file_name().is_some_and(|name| name == OURSELVES)
                && arguments.first().is_some_and(|word| word == "serve")
        }
        Kind::Http { .. } => false,
    };
    !entry.is_disabled && !is_ours
}

/// What was done.
#[derive(Default)]
struct Imported {
    added: Vec<String>,
    /// Upstreams that the configuration has already.
    present: Vec<String>,
    backups: Vec<PathBuf>,
}

impl Imported {
    /// Adds the servers to the configuration.
    fn write(&mut self, servers: &[&NamedServer], config: &Path) -> Result<()> {
        let shown = config.display().to_string();
        // The servers may have secrets, so a new file is for its owner only.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(config);
        let is_new = match made {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error).with_context(|| format!("creating `{shown}`")),
        };
        let original = Original::read(config)?;
        let before = original.text().unwrap_or_default();
        let known = Settings::parse(before, &shown)?;
        let mut text = before.to_owned();
        for server in servers {
            let name = upstream_name(&server.name);
            let is_known = known.upstreams().iter().any(|(other, _)| *other == name);
            if is_known || self.added.contains(&name) {
                self.present.push(name);
                continue;
            }
            if !text.is_empty() && !text.ends_with("\n\n") {
                text += if text.ends_with('\n') { "\n" } else { "\n\n" };
            }
            text += &section(&name, &server.kind);
            self.added.push(name);
        }
        // The result must be a file that `tidings serve` takes.
        Settings::parse(&text, &shown)?;
        if !self.added.is_empty() {
            match original.replace(&text)? {
                // Nothing was there before.
                Some(backup) if is_new => drop(std::fs::remove_file(backup)),
                backup => self.backups.extend(backup),
            }
        }
        Ok(())
    }

    /// Puts one entry that starts us in the place of the servers in the host's file.
    fn replace(
        &mut self,
        args: &args::Import,
        client: Client,
        file: &Path,
        servers: &[&NamedServer],
    ) -> Result<()> {
        let config = std::path::absolute(&args.config)?;
        let program = std::env::current_exe().unwrap_or_else(|_| OURSELVES.into());
        let words = ["serve", "--config", &config.to_string_lossy(), "--stdio"];
        let words = words.map(str::to_owned).to_vec();
        let server = client.server(program.to_string_lossy().into_owned(), words, BTreeMap::new());
        let original = Original::read(file)?;
        let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        let rest = without(original.text().unwrap_or_default(), client.key, &names)?;
        let new = match merge(&rest, client.key, OURSELVES, &server, Other::Replace)? {
            Merged::Present => rest,
            Merged::Added(text) | Merged::Replaced(text) => text,
        };
        self.backups.extend(original.replace(&new)?);
        Ok(())
    }

    fn report(&self, args: &args::Import, file: &Path, output: &Output) -> Result<()> {
        if output.json {
            return output.object(&json!({
                "host": args.host, "file": file, "config": args.config, "added": self.added,
                "present": self.present, "replaced": args.replace, "backups": self.backups,
            }));
        }
        let config = args.config.display();
        for name in &self.added {
            output.raw(&format!("added `[upstream.{name}]` to `{config}`"))?;
        }
        for name in &self.present {
            output.raw(&format!("`[upstream.{name}]` is already in `{config}`"))?;
        }
        if args.replace {
            let file = file.display();
            output.raw(&format!("`{file}` now starts `tidings serve`; restart {}", args.host))?;
        } else {
            output.raw(&format!("serve them: `tidings serve --config {config}`"))?;
        }
        for backup in &self.backups {
            output.raw(&format!("the old file was saved as `{}`", backup.display()))?;
        }
        Ok(())
    }
}

/// The section of a server.
fn section(name: &str, kind: &Kind) -> String {
    let table = |key: &str, table: &BTreeMap<String, String>| {
        let pairs =
            table.iter().map(|(name, value)| format!("{} = {}", toml_key(name), toml_text(value)));
        match pairs.collect::<Vec<_>>() {
            pairs if pairs.is_empty() => String::new(),
            pairs => format!("{key} = {{ {} }}\n", pairs.join(", ")),
        }
    };
    let mut text = format!("[upstream.{}]\n", toml_key(name));
    // Writing to a text cannot fail.
    let _ = match kind {
        Kind::Http { url, headers } => {
            write!(text, "url = {}\n{}", toml_text(url), table("headers", headers))
        }
        Kind::Command { program, arguments, environment, folder } => {
            let words = std::iter::once(program).chain(arguments).map(|word| toml_text(word));
            let words = words.collect::<Vec<_>>().join(", ");
            let cwd = folder.iter().map(|folder| format!("cwd = {}\n", toml_text(folder)));
            let cwd: String = cwd.collect();
            write!(text, "command = [{words}]\n{}{cwd}", table("env", environment))
        }
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_says_what_the_host_said() {
        let environment = [("KEY".to_owned(), "${TOKEN}".to_owned())].into();
        let arguments = vec!["-y".to_owned(), "a \"b\"".to_owned()];
        let kind = Kind::Command {
            program: "npx".to_owned(),
            arguments,
            environment,
            folder: Some("/x".to_owned()),
        };
        insta::assert_snapshot!(section("git-hub", &kind), @r#"
        [upstream.git-hub]
        command = ["npx", "-y", "a \"b\""]
        env = { KEY = "${TOKEN}" }
        cwd = "/x"
        "#);
        let headers = [("X-Key".to_owned(), "k".to_owned())].into();
        insta::assert_snapshot!(section("a", &Kind::Http { url: "http://a".to_owned(), headers }), @r#"
        [upstream.a]
        url = "http://a"
        headers = { X-Key = "k" }
        "#);
    }
}
