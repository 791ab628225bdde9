//! `tidings servers`: the servers in the `mcp.json` files, and their commands.

use anyhow::Result;
use serde_json::json;

use crate::args;
use crate::hosts::{Kind, NamedServer, Surroundings};
use crate::present::Output;
use crate::present::table::Table;
use crate::target;

pub(crate) fn run(args: &args::Servers) -> Result<()> {
    let surroundings = Surroundings::new();
    let found = target::known(&args.places, &surroundings)?;
    let output = Output::new(args.json);
    for problem in &found.problems {
        output.remark(&format!("warning: {problem}"));
    }
    if args.json {
        for entry in &found.entries {
            output.object(&object(entry))?;
        }
    } else if found.entries.is_empty() {
        output.remark("no mcp.json has a server; searched:");
        for file in surroundings.files() {
            output.remark(&format!("  {}", file.display()));
        }
    } else {
        let mut table = Table::new(["NAME", "RUNS", "FILE"]);
        for entry in &found.entries {
            let file = entry.file.display().to_string();
            table.row([entry.name.clone(), runs(&entry.kind), file]);
        }
        output.raw(&table.render(output.width, output.paint))?;
    }
    Ok(())
}

/// Variables are not replaced, and headers and environment are not shown: they may be secret.
fn runs(kind: &Kind) -> String {
    match kind {
        Kind::Http { url, .. } => url.clone(),
        Kind::Command { program, arguments, .. } => {
            [std::slice::from_ref(program), arguments].concat().join(" ")
        }
    }
}

fn object(entry: &NamedServer) -> serde_json::Value {
    let (name, file) = (&entry.name, &entry.file);
    match &entry.kind {
        Kind::Http { url, .. } => {
            json!({ "name": name, "file": file, "kind": "http", "url": url })
        }
        Kind::Command { program, arguments, .. } => json!({
            "name": name, "file": file, "kind": "command", "command": program, "args": arguments,
        }),
    }
}
