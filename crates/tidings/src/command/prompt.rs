//! `tidings prompt`: fills in a prompt and prints its messages.

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use tidings_mirror::List;
use tidings_mirror::model::Prompt;

use crate::args;
use crate::present::content;
use crate::report::{Hint, Usage};
use crate::session::{self, Session};
use crate::values::{self, Pair, nearest};

pub(crate) async fn run(args: &args::Prompt) -> Result<()> {
    let (place, rest) = args.connection.place(&args.words)?;
    let Some((name, words)) = rest.split_first() else {
        return Err(Usage::new("NAME is missing")
            .hint("`tidings prompts` lists the prompts")
            .into());
    };
    let pairs = values::pairs(words)?;
    session::once(&args.connection, place, &[List::Prompts], async |session| {
        fill_in(session, args, name, &pairs).await
    })
    .await
}

async fn fill_in(
    session: &Session,
    args: &args::Prompt,
    name: &str,
    pairs: &[Pair<'_>],
) -> Result<()> {
    session.loaded(List::Prompts)?;
    let prompts = session.mirror.prompts();
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let names: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("`{}` lists the prompts", session.place.line("prompts", &[])),
        };
        return Err(anyhow!("the server has no prompt `{name}`").context(Hint(hint)));
    };
    let arguments = checked(prompt, pairs)?;
    let mirror = session.mirror.with(args.meta.options());
    let content = mirror.get_prompt(name, arguments).await;
    let content = content.with_context(|| format!("filling in `{name}`"))?;
    if session.output.json {
        let result = content.raw();
        let object = json!({ "prompt": name, "arguments": content.arguments, "result": result });
        return session.output.object(&object);
    }
    content::prompt(name, &content, &session.output)
}

/// The arguments, if the prompt has them and none is missing.
fn checked(
    prompt: &Prompt,
    pairs: &[Pair<'_>],
) -> Result<std::collections::BTreeMap<String, String>, Usage> {
    let declared = prompt.arguments.as_deref().unwrap_or_default();
    let names: Vec<_> = declared.iter().map(|argument| argument.name.as_str()).collect();
    let arguments = values::texts(pairs, Some(&names))?;
    let missing =
        declared.iter().find(|it| it.required == Some(true) && !arguments.contains_key(&it.name));
    match missing {
        None => Ok(arguments),
        Some(argument) => {
            let about = argument.description.as_deref().map(|text| format!(": {text}"));
            Err(Usage::new(format!("argument `{}` is missing", argument.name)).hint(format!(
                "give `{}=TEXT`{}",
                argument.name,
                about.unwrap_or_default()
            )))
        }
    }
}
