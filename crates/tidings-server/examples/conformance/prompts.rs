//! The prompts.

use tidings_server::model::{ContentBlock, GetPromptRequestParams, GetPromptResponse};
use tidings_server::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage};
use tidings_server::model::{ResourceContents, Role};
use tidings_server::{AnswerError, Context, EditError, Shelf};

use crate::{PNG, live, rounds, text_argument};

pub(crate) fn offer(shelf: &Shelf) -> Result<(), EditError> {
    for (name, description, arguments) in [
        ("test_simple_prompt", "A prompt without arguments", &[][..]),
        ("test_prompt_with_arguments", "A prompt with two arguments", &["arg1", "arg2"][..]),
        ("test_prompt_with_embedded_resource", "A prompt about a resource", &["resourceUri"][..]),
        ("test_prompt_with_image", "A prompt about an image", &[][..]),
        (rounds::PROMPT, "A prompt that needs to know more", &[][..]),
    ] {
        let arguments = arguments.iter().map(|argument| {
            let argument = PromptArgument::new(*argument).with_description("Goes into the text");
            argument.with_required(true)
        });
        let arguments: Vec<_> = arguments.collect();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        shelf.add(Prompt::new(name, Some(description), arguments))?;
    }
    Ok(())
}

pub(crate) fn get(
    request: &GetPromptRequestParams,
    context: &Context,
) -> Result<GetPromptResponse, AnswerError> {
    let argument = |name| text_argument(request.arguments.as_ref(), name);
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![ContentBlock::text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            let text = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
            vec![ContentBlock::text(text)]
        }
        "test_prompt_with_embedded_resource" => {
            let text = "Embedded resource content for testing.";
            let resource = ResourceContents::text(text, argument("resourceUri")?);
            vec![
                ContentBlock::resource(resource.with_mime_type("text/plain")),
                ContentBlock::text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            ContentBlock::image(PNG, "image/png"),
            ContentBlock::text("Please analyze the image above."),
        ],
        rounds::PROMPT => match rounds::prompt_context(request.input_responses.as_ref()) {
            Some(context) => vec![ContentBlock::text(format!("The context is: {context}"))],
            None => return Ok(rounds::ask_for_context(context)?.into()),
        },
        live::CHANGING_PROMPT => vec![ContentBlock::text("The description is what changes.")],
        other => return Err(AnswerError::not_found(other)),
    };
    let messages = contents.into_iter().map(|content| PromptMessage::new(Role::User, content));
    Ok(GetPromptResult::new(messages.collect()).into())
}
