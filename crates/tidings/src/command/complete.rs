//! `tidings complete`: lists possible values of an argument.

use anyhow::{Context as _, Result};
use serde_json::json;
use tidings_mirror::Reference;

use crate::args;
use crate::present::text::one_line;
use crate::report::Usage;
use crate::session;
use crate::values;

pub(crate) async fn run(args: &args::Complete) -> Result<()> {
    let (place, rest) = args.connection.place(&args.words)?;
    let [kind, name, words @ ..] = rest else {
        return Err(usage("`prompt` or `template` is missing").into());
    };
    let reference = match kind.as_str() {
        "prompt" => Reference::Prompt(name.clone()),
        "template" => Reference::Template(name.clone()),
        other => return Err(usage(&format!("`{other}` is neither `prompt` nor `template`")).into()),
    };
    let pairs = values::pairs(words)?;
    let Some((argument, others)) = pairs.split_first() else {
        return Err(usage("the argument to complete is missing").into());
    };
    let known = values::texts(others, None)?;
    session::once(&args.connection, place, &[], async |session| {
        let completion =
            session.mirror.complete(reference, argument.key, argument.value, known).await;
        let completion =
            completion.with_context(|| format!("completing `{}` of `{name}`", argument.key))?;
        let output = &session.output;
        if output.json {
            return output.object(&json!({
                "values": completion.values, "total": completion.total,
                "has_more": completion.has_more,
            }));
        }
        let lines: Vec<_> = completion.values.iter().map(|value| one_line(value)).collect();
        output.raw(&lines.join("\n"))?;
        if completion.has_more {
            let total = completion.total.map(|total| format!(", {total} in all"));
            output.remark(&format!("there are more{}", total.unwrap_or_default()));
        }
        Ok(())
    })
    .await
}

fn usage(message: &str) -> Usage {
    Usage::new(message)
        .hint("write `prompt NAME ARGUMENT=PREFIX` or `template TEMPLATE ARGUMENT=PREFIX`")
}
