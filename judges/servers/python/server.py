"""A server made with the Python SDK: both eras, over stdio or (--http) Streamable HTTP."""

import argparse
import os
import signal
import socket
import sys

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

COUNTER = "test://counter"
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NAMES = ["Ada", "Alan", "Grace"]


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


NUMBER, STRING = {"type": "number"}, {"type": "string"}
TOOLS = [
    types.Tool(name="echo", description="Says it again", input_schema=schema(["message"], message=STRING)),
    types.Tool(name="add", description="Adds two numbers", input_schema=schema(["a", "b"], a=NUMBER, b=NUMBER), output_schema=schema(["sum"], sum=NUMBER)),
    types.Tool(name="grow", description="Adds one more tool", input_schema=schema()),
    types.Tool(name="touch", description="Changes a resource", input_schema=schema(uri=STRING, times={"type": "integer"})),
    types.Tool(name="fail", description="Fails", input_schema=schema()),
    types.Tool(name="slow", description="Says how far it is", input_schema=schema(["steps"], steps={"type": "integer"})),
    types.Tool(name="cut", description="Ends every listen and changes what nobody hears of", input_schema=schema()),
    types.Tool(name="hang", description="Never answers", input_schema=schema()),
]


async def told(sending):
    """Whether there was still somebody to tell."""
    try:
        await sending
        return True
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return False


class World:
    """What every connection sees, and who is told when it changes."""

    def __init__(self):
        self.count, self.extra = 0, 0
        self.bus = InMemorySubscriptionBus()
        self.listens = ListenHandler(self.bus)  # the modern era
        self.sessions = []  # legacy connections
        self.watchers = []  # (session, uri) of legacy subscriptions

    async def grow(self):
        self.extra += 1
        await self.bus.publish(ToolsListChanged())
        self.sessions = [session for session in self.sessions if await told(session.send_tool_list_changed())]
        return f"extra_{self.extra}"

    async def touch(self, uri, times=1):
        for _ in range(times):
            self.count += 1
            await self.bus.publish(ResourceUpdated(uri=uri))
            self.watchers = [(s, u) for s, u in self.watchers if u != uri or await told(s.send_resource_updated(uri))]
        return f"count {self.count}"

    async def cut(self):
        self.listens.close()
        return await self.touch(COUNTER)

    async def obey(self, port):
        """Does what the judge says over a connection, and answers each line."""
        async with await anyio.connect_tcp("127.0.0.1", port) as judge:
            async for lines in judge:
                for line in lines.decode().splitlines():
                    what, _, times = line.partition(" ")
                    if what == "die":
                        os.kill(os.getpid(), signal.SIGKILL)
                    for _ in range(int(times or 1)):
                        await {"grow": self.grow, "cut": self.cut}.get(what, lambda: self.touch(COUNTER))()
                    await judge.send(f"{line} done\n".encode())


world = World()


def text(line, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=line)], **more)


async def list_tools(_context, _params):
    extra = [types.Tool(name=f"extra_{n + 1}", input_schema=schema()) for n in range(world.extra)]
    return types.ListToolsResult(tools=TOOLS + extra)


async def call_tool(context, params):
    values = params.arguments or {}
    match params.name:
        case "echo":
            return text(values["message"])
        case "add":
            total = values["a"] + values["b"]
            return text(str(total), structured_content={"sum": total})
        case "grow":
            return text(await world.grow())
        case "touch":
            return text(await world.touch(values.get("uri", COUNTER), values.get("times", 1)))
        case "fail":
            return text("it did not work", is_error=True)
        case "slow":
            for step in range(1, values["steps"] + 1):
                await context.session.report_progress(step, values["steps"], f"step {step}")
                await anyio.sleep(0.01)
            return text(f"{values['steps']} steps")
        case "cut":
            return text(await world.cut())
        case "hang":
            try:
                await anyio.sleep_forever()
            finally:
                print("hang was cancelled", file=sys.stderr, flush=True)
    raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name}")


async def list_resources(_context, _params):
    counter = types.Resource(name="counter", uri=COUNTER, mime_type="text/plain", description="How often it was touched")
    return types.ListResourcesResult(resources=[counter, types.Resource(name="picture", uri="test://picture", mime_type="image/png")])


async def list_templates(_context, _params):
    item = types.ResourceTemplate(name="item", uri_template="test://item/{id}", mime_type="text/plain")
    return types.ListResourceTemplatesResult(resource_templates=[item])


async def read(_context, params):
    uri = str(params.uri)
    if uri == "test://picture":
        return types.ReadResourceResult(contents=[types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PICTURE)])
    if uri == COUNTER:
        line = f"count {world.count}"
    elif uri.startswith("test://item/"):
        line = f"item {uri.removeprefix('test://item/')}"
    else:
        raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri}")
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=line)])


def same_client(a, b):
    return a.client_params is b.client_params  # one object for each connection


async def subscribe(context, params):
    world.watchers.append((context.session, str(params.uri)))
    return types.EmptyResult()


async def unsubscribe(context, params):
    world.watchers = [(s, u) for s, u in world.watchers if u != str(params.uri) or not same_client(s, context.session)]
    return types.EmptyResult()


async def initialized(context, _params):
    world.sessions.append(context.session)


async def list_prompts(_context, _params):
    arguments = [types.PromptArgument(name="name", required=True)]
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", description="Greets somebody", arguments=arguments)])


async def get_prompt(_context, params):
    hello = types.TextContent(type="text", text=f"Hello, {params.arguments['name']}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=hello)])


async def complete(_context, params):
    known = NAMES if params.ref.type == "ref/prompt" else ["1", "10", "2"]
    values = [value for value in known if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


class Judge(Server):
    def create_initialization_options(self, notification_options=None, *rest, **more):
        return super().create_initialization_options(NotificationOptions(tools_changed=True), *rest, **more)


server = Judge(
    "judge-python",
    version="1.0.0",
    title="A judge",
    instructions="Call `touch` and look at the counter.",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=world.listens,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
)
server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--extra", type=int, default=0, help="how many more tools there are at the start")
    parser.add_argument("--control", type=int)
    options = parser.parse_args()
    world.extra = options.extra
    if options.http:
        listener = socket.create_server(("127.0.0.1", options.port))
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        await uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).serve([listener])
        return
    async with anyio.create_task_group() as tasks:
        if options.control:
            tasks.start_soon(world.obey, options.control)
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())
        tasks.cancel_scope.cancel()


anyio.run(main)
