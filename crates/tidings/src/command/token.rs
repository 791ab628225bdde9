//! `tidings token`: create, list and remove the tokens of clients.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;
use tidings_server::Labels;
use tidings_server::http::{Token as Secret, TokenHash};
use tidings_store::date::Moment;

use crate::args::{Token, TokenCommand, TokenLs, TokenNew, TokenRm};
use crate::feeds::away;
use crate::present::Output;
use crate::present::table::Table;
use crate::report::Usage;
use crate::tokens::{StoredToken, add, load, place, remove, secret};

pub(crate) fn run(args: &Token) -> Result<()> {
    match &args.command {
        TokenCommand::New(args) => new(args),
        TokenCommand::Ls(args) => list(args),
        TokenCommand::Rm(args) => rm(args),
    }
}

fn new(args: &TokenNew) -> Result<()> {
    let output = Output::new(args.place.json);
    let file = place(args.place.tokens.as_deref())?;
    let now = Moment::now();
    let expires = args.expires.map(|expiry| expiry.moment(now));
    if expires.is_some_and(|expires| expires <= now) {
        bail!(Usage::new("`--expires` is in the past").hint("give a later date"));
    }
    let secret = secret()?;
    let token = StoredToken {
        name: args.name.clone(),
        hash: TokenHash::of(&Secret::new(&secret)?),
        labels: Labels::new(&args.labels).map_err(|error| Usage::new(error.to_string()))?,
        created: Some(now.to_second()),
        expires,
        connections: args.connections,
        sessions: args.sessions,
        listeners: args.listeners,
    };
    add(&file, &token)?;
    let printed = if args.place.json {
        let mut object = object(&token, now);
        object["secret"] = json!(secret);
        output.object(&object)
    } else {
        remark(&output, &file, &token, now);
        output.raw(&secret)
    };
    if printed.is_err() {
        // Nobody has the secret, so the token is of no use.
        remove(&file, std::slice::from_ref(&token.name))?;
    }
    printed
}

fn remark(output: &Output, file: &Path, token: &StoredToken, now: Moment) {
    let expires = token.expires.map(|expires| format!("; it expires {}", away(expires, now)));
    output.remark(&format!(
        "added the token `{}` to `{}`{}",
        token.name,
        file.display(),
        expires.unwrap_or_default()
    ));
    output.remark("its secret is printed only now; clients send it as a bearer token:");
}

fn list(args: &TokenLs) -> Result<()> {
    let output = Output::new(args.place.json);
    let file = place(args.place.tokens.as_deref())?;
    if args.place.tokens.is_none() && !file.exists() {
        if !args.place.json {
            output.remark(&format!("there are no tokens in `{}`", file.display()));
        }
        return Ok(());
    }
    let loaded = load(&file)?;
    for problem in &loaded.problems {
        output.remark(&format!("warning: `{}`, {problem}", file.display()));
    }
    if loaded.readable.is_some() {
        let shown = file.display();
        output.remark(&format!("warning: others can read `{shown}`: run `chmod 600 {shown}`"));
    }
    let now = Moment::now();
    if args.place.json {
        return loaded.tokens.iter().try_for_each(|token| output.object(&object(token, now)));
    }
    if loaded.tokens.is_empty() {
        output.remark(&format!("there are no tokens in `{}`", file.display()));
        return Ok(());
    }
    let mut table = Table::new(["NAME", "LABELS", "EXPIRES", "CREATED", "LIMITS"]);
    for token in &loaded.tokens {
        table.row([
            token.name.clone(),
            token.labels.to_string(),
            expires(token, now),
            token.created.map(|created| away(created, now)).unwrap_or_default(),
            limits(token),
        ]);
    }
    output.raw(&table.render(output.width, output.paint))
}

fn rm(args: &TokenRm) -> Result<()> {
    let output = Output::new(args.place.json);
    remove(&place(args.place.tokens.as_deref())?, &args.names)?;
    for name in &args.names {
        if args.place.json {
            output.object(&json!({ "state": "removed", "name": name }))?;
        } else {
            output.raw(&format!("removed {name}"))?;
        }
    }
    Ok(())
}

/// When a token expires, in words.
fn expires(token: &StoredToken, now: Moment) -> String {
    match token.expires {
        None => "never".to_owned(),
        Some(expires) if token.is_expired(now) => format!("expired {}", away(expires, now)),
        Some(expires) => away(expires, now),
    }
}

fn limits(token: &StoredToken) -> String {
    let limits = [
        ("connections", token.connections),
        ("sessions", token.sessions),
        ("listeners", token.listeners),
    ];
    let limits = limits.iter().filter_map(|(what, number)| number.map(|it| format!("{it} {what}")));
    limits.collect::<Vec<_>>().join(", ")
}

fn object(token: &StoredToken, now: Moment) -> serde_json::Value {
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
    json!({
        "name": token.name,
        "labels": token.labels.iter().collect::<Vec<_>>(),
        "created": moment(token.created),
        "expires": moment(token.expires),
        "expired": token.is_expired(now),
        "connections": token.connections,
        "sessions": token.sessions,
        "listeners": token.listeners,
    })
}
