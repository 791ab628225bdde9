"""A client of the Python SDK that does what it is told: `client.py URL legacy|modern`.

A line of standard input is `{"id", "does", "words"}`. On standard output come `{"ready"}`, an answer
`{"id", "value"}` or `{"id", "error"}` for each line, and the notices: `{"updated": URI}` and
`{"changed": KIND}`.
"""

import asyncio
import json
import re
import sys
from contextlib import AsyncExitStack

import mcp_types as types
from mcp.client import Client


def say(**what):
    print(json.dumps(what), flush=True)


def plain(item):
    return item.model_dump(by_alias=True, mode="json", exclude_none=True)


async def heard(message):
    kind = re.fullmatch(r"notifications/(tools|prompts|resources)/list_changed", getattr(message, "method", ""))
    if kind:
        say(changed=kind[1])
    elif isinstance(message, types.ResourceUpdatedNotification):
        say(updated=str(message.params.uri))


class Peer:
    def __init__(self, client, era, stack):
        self.client, self.era, self.stack, self.listens = client, era, stack, []

    async def pages(self, ask, field):
        found, cursor = [], None
        while True:
            page = await ask(cursor=cursor)
            found += [plain(item) for item in getattr(page, field)]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def tools(self):
        return await self.pages(self.client.list_tools, "tools")

    async def prompts(self):
        return await self.pages(self.client.list_prompts, "prompts")

    async def resources(self):
        return await self.pages(self.client.list_resources, "resources")

    async def templates(self):
        return await self.pages(self.client.list_resource_templates, "resource_templates")

    async def read(self, uri):
        return plain(await self.client.read_resource(uri))

    async def prompt(self, name, values):
        return plain(await self.client.get_prompt(name, values))

    async def complete(self, ref, argument):
        kinds = {"ref/prompt": types.PromptReference, "ref/resource": types.ResourceTemplateReference}
        result = await self.client.complete(kinds[ref["type"]](**ref), argument)
        return result.completion.values

    async def call(self, name, values):
        progress = []

        async def told(at, _total, _message):
            progress.append(at)

        result = await self.client.call_tool(name, values, progress_callback=told)
        return {"result": plain(result), "progress": progress}

    async def watch(self, uris):
        if self.era == "legacy":
            for uri in uris:
                await self.client.subscribe_resource(uri)
            return
        listen = self.client.listen(resource_subscriptions=uris, tools_list_changed=True)
        subscription = await self.stack.enter_async_context(listen)

        async def drain():
            async for _ in subscription:
                pass

        self.listens.append(asyncio.create_task(drain()))

    async def do(self, order):
        try:
            say(id=order["id"], value=await getattr(self, order["does"])(*order["words"]))
        except Exception as error:
            say(id=order["id"], error=f"{type(error).__name__}: {error}")


async def main(url, era):
    mode = "auto" if era == "modern" else "legacy"
    info = types.Implementation(name="tidings-gateway-judge", version="1.0.0")
    client = Client(url, mode=mode, message_handler=heard, client_info=info, read_timeout_seconds=30, cache=None)
    async with client, AsyncExitStack() as stack:
        expected = {"legacy": "2025-11-25", "modern": "2026-07-28"}[era]
        assert client.protocol_version == expected, client.protocol_version
        peer = Peer(client, era, stack)
        say(ready=True)
        reader = asyncio.StreamReader(limit=1 << 24)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        # One after another: the order is the judge's.
        async for line in reader:
            await peer.do(json.loads(line))


asyncio.run(main(*sys.argv[1:]))
