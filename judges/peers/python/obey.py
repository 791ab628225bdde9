"""A peer made with the Python SDK that does what it is told.

One JSON object a line in, {"id", "value"} or {"id", "error"} a line out. In the modern era watching is a listen of
its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import traceback
import warnings
from collections import Counter
from typing import Any

from client import VERSIONS, Listen, Peer, connected, say
from mcp.shared.exceptions import MCPDeprecationWarning


class Obedient:
    def __init__(self, peer: Peer, modern: bool) -> None:
        self.peer = peer
        self.modern = modern
        self.listens: dict[str, Listen] = {}

    async def watch(self, uri: str) -> None:
        if self.modern:
            self.listens[uri] = await self.peer.listen(resource_subscriptions=[uri])
        else:
            await self.peer.subscribe(uri)

    async def unwatch(self, uri: str) -> None:
        if self.modern:
            await self.listens.pop(uri).close()
        else:
            await self.peer.unsubscribe(uri)

    async def follow(self) -> None:
        """Follows the lists of tools and resources, which a legacy session does by itself."""
        if self.modern:
            await self.peer.listen(tools_list_changed=True, resources_list_changed=True)

    async def heard(self) -> dict[str, int]:
        return Counter(name.split(" @")[0] for name in self.peer.ears.handed)

    async def tools(self) -> list[str]:
        return await self.peer.tools()

    async def count(self, uri: str) -> int:
        return sum(name.split(" @")[0] == f"updated {uri}" for name in self.peer.ears.handed)

    async def read(self, uri: str) -> Any:
        return json.loads(await self.peer.read(uri))

    async def call(self, name: str, args: dict[str, Any]) -> Any:
        result = await self.peer.client.call_tool(name, args)
        if result.is_error:
            raise RuntimeError(f"{name} failed: {result.content}")
        return result.structured_content

    async def errors(self) -> list[str]:
        return self.peer.ears.errors


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=list(VERSIONS), required=True)
    parser.add_argument("--transport", choices=["stdio", "http"], default="http")
    parser.add_argument("--url")
    parser.add_argument("--server")
    parser.add_argument("--words", type=json.loads)
    parser.add_argument("--token")
    options = parser.parse_args()
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # subscribe_resource is deprecated, and meant here
    async with connected(options) as peer:
        obedient = Obedient(peer, options.era == "modern")
        say(id=0)
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            number, name = order.pop("id"), order.pop("order")
            if name == "close":
                break
            try:
                say(id=number, value=await getattr(obedient, name)(**order))
            except Exception:
                say(id=number, error=traceback.format_exc())


if __name__ == "__main__":
    asyncio.run(main())
