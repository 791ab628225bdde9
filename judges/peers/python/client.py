"""The peer made with the Python SDK: both eras.

Prints one JSON object per check on stdout: {"check", "ok", "expected", "got", "log"}, then {"done": true}.
The notices are counted where the SDK hands them out: `message_handler` gets every copy, in both eras; in the
modern era each `listen()` is an iterator besides. The iterator drops an event equal to one not yet taken, so it
is taken from at once and only has to agree with the handler.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning

WATCHED = "test://watched-resource"
STATIC = "test://static-text"
UNKNOWN = "test://no-such-resource"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
NEEDED_TOOLS = ["add_tools", "remove_tools", "test_simple_text", "touch_watched"]

ARRIVE_S = 3.0  # how long an expected notice may take
SILENCE_S = 0.6  # how long it must then stay silent
CALL_S = 10.0  # how long one request may take

STARTED = time.monotonic()
Counts = dict[str, int]


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def plain(counts: Counts) -> Counts:
    return {name: n for name, n in sorted(counts.items()) if n}


def without_subscriptions(counts: Counts) -> Counts:
    bare: Counts = Counter()
    for name, n in counts.items():
        bare[name.split(" @")[0]] += n
    return bare


def last_number(text: str) -> int | None:
    numbers = re.findall(r"\d+", text)
    return int(numbers[-1]) if numbers else None


class Ears:
    """Counts what a client hears."""

    def __init__(self, era: str) -> None:
        self.modern = era == "modern"
        self.handed: list[str] = []  # from message_handler, with the subscription in the modern era
        self.iterated: list[str] = []  # from the iterators of the listens
        self.log: list[str] = []
        self.errors: list[str] = []
        self.news = asyncio.Condition()

    def note(self, text: str) -> None:
        self.log.append(f"{(time.monotonic() - STARTED) * 1000:6.0f} ms {text[:240]}")

    def error(self, text: str) -> None:
        self.note(f"!! {text}")
        self.errors.append(text)

    async def handler(self, message: Any) -> None:
        if isinstance(message, Exception):
            self.error(repr(message))
            return
        params = getattr(message, "params", None)
        meta = dict(getattr(params, "meta", None) or {})
        self.note(f"<- {message.method} {params!r}")
        kind = re.fullmatch(r"notifications/(tools|prompts|resources)/list_changed", message.method)
        name = kind[1] if kind else message.method
        if isinstance(message, types.ResourceUpdatedNotification):
            name = f"updated {message.params.uri}"
        if self.modern:
            name += f" @{meta.get(SUBSCRIPTION_ID, 'no subscription')}"
        await self.add(self.handed, name)

    async def add(self, where: list[str], name: str) -> None:
        where.append(name)
        async with self.news:
            self.news.notify_all()

    def mark(self) -> tuple[int, int, int]:
        return len(self.handed), len(self.iterated), len(self.log)

    def since(self, mark: tuple[int, int, int]) -> dict[str, Counts]:
        heard = {"handler": plain(Counter(self.handed[mark[0] :]))}
        if self.modern:
            heard["iterators"] = plain(Counter(self.iterated[mark[1] :]))
        return heard

    async def arrived(self, mark: tuple[int, int, int], expected: Counts) -> None:
        def enough() -> bool:
            return all(
                counts.get(name, 0) >= n for counts in self.since(mark).values() for name, n in expected.items()
            )

        try:
            async with asyncio.timeout(ARRIVE_S), self.news:
                await self.news.wait_for(enough)
        except TimeoutError:
            pass


class Listen:
    def __init__(self, ears: Ears, context: Any, subscription: Any) -> None:
        self.id = subscription.subscription_id
        self.honored = subscription.honored.model_dump(by_alias=True, mode="json", exclude_none=True)
        self._ears = ears
        self._context = context
        self._closing = False
        self._task = asyncio.create_task(self._take(subscription))

    async def _take(self, subscription: Any) -> None:
        names = {ToolsListChanged: "tools", PromptsListChanged: "prompts", ResourcesListChanged: "resources"}
        try:
            async for event in subscription:
                name = f"updated {event.uri}" if isinstance(event, ResourceUpdated) else names[type(event)]
                await self._ears.add(self._ears.iterated, f"{name} @{self.id}")
            if not self._closing:
                self._ears.error(f"{self.id} was closed by the server")
        except Exception as error:
            self._ears.error(f"{self.id}: {error!r}")

    async def close(self) -> None:
        self._closing = True
        self._ears.note(f"-> close of {self.id}")
        await self._context.__aexit__(None, None, None)
        await self._task


class Peer:
    def __init__(self, client: Client, ears: Ears) -> None:
        self.client = client
        self.ears = ears

    async def tools(self) -> list[str]:
        names: list[str] = []
        cursor = None
        while True:
            self.ears.note("-> tools/list")
            page = await self.client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return names

    async def read(self, uri: str) -> str:
        result = await self.client.read_resource(uri)
        text = "\n".join(getattr(part, "text", "") for part in result.contents)
        self.ears.note(f"-> resources/read {uri}: {text}")
        return text

    async def call(self, name: str, **arguments: Any) -> None:
        self.ears.note(f"-> tools/call {name} {arguments}")
        result = await self.client.call_tool(name, arguments)
        self.ears.note(f"<- result of {name}")
        if result.is_error:
            raise RuntimeError(f"{name} failed: {result.content}")

    async def subscribe(self, uri: str) -> None:
        self.ears.note(f"-> resources/subscribe {uri}")
        await self.client.subscribe_resource(uri)

    async def unsubscribe(self, uri: str) -> None:
        self.ears.note(f"-> resources/unsubscribe {uri}")
        await self.client.unsubscribe_resource(uri)

    async def listen(self, **asked: Any) -> Listen:
        context = self.client.listen(**asked)
        subscription = await context.__aenter__()
        self.ears.note(f"-> listen {subscription.subscription_id} {asked}, honoured {subscription.honored!r}")
        return Listen(self.ears, context, subscription)


@asynccontextmanager
async def connected(options: argparse.Namespace):
    ears = Ears(options.era)
    server: Any = options.url
    if getattr(options, "token", None):
        headers = {"authorization": f"Bearer {options.token}"}
        server = streamable_http_client(options.url, http_client=create_mcp_http_client(headers=headers))
    if options.transport == "stdio":
        words = getattr(options, "words", None) or ["--stdio"]
        server = StdioServerParameters(command=options.server, args=words)
    client = Client(
        server,
        # "auto" asks server/discover; the version it settles on is checked.
        mode="auto" if options.era == "modern" else "legacy",
        message_handler=ears.handler,
        client_info=types.Implementation(name="tidings-peer-python", version="1.0.0"),
        read_timeout_seconds=CALL_S,
        cache=None,
    )
    async with client:
        yield Peer(client, ears)


class Complaints(logging.Handler):
    """What the SDK only logs: a notice it could not parse, a stream it could not read."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"{record.name}: {record.getMessage()}")


def check(name: str, expected: Any, got: Any, ears: Ears, mark: tuple[int, int, int] | None = None) -> None:
    ok = expected == got
    say(check=name, ok=ok, expected=expected, got=got, log=None if ok else ears.log[mark[2] if mark else -40 :][-60:])


async def exactly(name: str, ears: Ears, mark: tuple[int, int, int], expected: Counts, when_arrived: Any = None) -> Any:
    """Exactly `expected` since `mark`, then silence."""
    await ears.arrived(mark, expected)
    early = await when_arrived() if when_arrived else None
    await asyncio.sleep(SILENCE_S)
    wanted = {"handler": plain(expected)}
    if ears.modern:
        wanted["iterators"] = plain(expected)
    check(name, wanted, ears.since(mark), ears, mark)
    return early


@asynccontextmanager
async def step(name: str, ears: Ears):
    """What a step raises is a failed check, and the steps after it still run."""
    try:
        yield
    except Exception:
        say(check=name, ok=False, expected="no error", got=traceback.format_exc(), log=ears.log[-60:])


def filter_of(**asked: Any) -> dict[str, Any]:
    return {key: sorted(value) if isinstance(value, list) else value for key, value in asked.items() if value}


async def judge(options: argparse.Namespace, peer: Peer) -> None:
    ears = peer.ears
    modern = options.era == "modern"
    start = (0, 0, 0)
    check("1 connect: negotiated version", VERSIONS[options.era], peer.client.protocol_version, ears)

    def at(name: str, listen: Listen | None) -> str:
        return f"{name} @{listen.id if listen else None}" if modern else name

    lists: Listen | None = None
    watch: Listen | None = None

    async with step("1 start", ears):
        if modern:
            lists = await peer.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
            asked = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
            check("1 listen: acknowledged filter", asked, filter_of(**lists.honored), ears)
            await exactly("1 listen: no notice at the start", ears, start, {})
        else:
            announced = {"tools": 1, "prompts": 1, "resources": 1}
            await exactly("1 announce: one list_changed of each kind", ears, start, announced)

    quiet = ears.mark()
    second_context = second = second_mark = None
    if options.transport == "http":
        async with step("6 second client: connect", ears):
            second_context = connected(options)
            second = await second_context.__aenter__()
            if modern:
                second_mark = second.ears.mark()
                asked = {"resourceSubscriptions": [STATIC]}
                second_listen = await second.listen(resource_subscriptions=[STATIC])
                check("6 second client: acknowledged filter", asked, filter_of(**second_listen.honored), second.ears)
            else:
                announced = {"tools": 1, "prompts": 1, "resources": 1}
                await exactly("6 second client: its own announce", second.ears, start, announced)
                second_mark = second.ears.mark()
                await second.subscribe(STATIC)

    async with step("1 tools/list", ears):
        first = await peer.tools()
        needed = sorted(name for name in first if name in NEEDED_TOOLS)
        check("1 tools/list: the tools needed are there", NEEDED_TOOLS, needed, ears)
        check("1 tools/list: twice the same", first, await peer.tools(), ears)
        await exactly("1 tools/list: no notice for asking", ears, quiet, {})

    text: str | None = None
    counts = False  # whether the text holds a number that counts the changes

    async with step("2 one change", ears):
        mark = ears.mark()
        before = await peer.read(WATCHED)
        if modern:
            watch = await peer.listen(resource_subscriptions=[WATCHED])
            asked = {"resourceSubscriptions": [WATCHED]}
            check("2 listen: acknowledged filter", asked, filter_of(**watch.honored), ears)
        else:
            await peer.subscribe(WATCHED)
        await peer.call("touch_watched", n=1, gap_ms=0)
        await exactly("2 one change: exactly one notice", ears, mark, {at(f"updated {WATCHED}", watch): 1})
        text = await peer.read(WATCHED)
        check("2 one change: the text differs", True, text != before, ears, mark)
        was, now = last_number(before), last_number(text)
        counts = was is not None and now == was + 1

    updated = at(f"updated {WATCHED}", watch)

    async with step("3 hundred changes", ears):
        mark = ears.mark()
        before = text if text is not None else await peer.read(WATCHED)
        await peer.call("touch_watched", n=100, gap_ms=0)
        name = "3 hundred changes: exactly one notice"
        early = await exactly(name, ears, mark, {updated: 1}, lambda: peer.read(WATCHED))
        text = await peer.read(WATCHED)
        check("3 hundred changes: the text differs", True, text != before, ears, mark)
        check("3 hundred changes: at the notice the last text is there", text, early, ears, mark)
        if counts:
            hundredth = (last_number(before) or 0) + 100
            check("3 hundred changes: the text is the hundredth", hundredth, last_number(text), ears, mark)

    async with step("4 two changes apart", ears):
        mark = ears.mark()
        await peer.call("touch_watched", n=2, gap_ms=400)
        soon = ears.since(mark)["handler"].get(updated, 0)
        await exactly("4 two changes 400 ms apart: exactly two notices", ears, mark, {updated: 2})
        check("4 two changes 400 ms apart: the first notice did not wait for the call", True, soon >= 1, ears, mark)

    async def extras() -> list[str]:
        return sorted(name for name in await peer.tools() if name.startswith("extra_"))

    async with step("5 tools", ears):
        mark = ears.mark()
        await peer.call("add_tools", n=20, gap_ms=0)
        await exactly("5 add 20 tools: exactly one tools/list_changed", ears, mark, {at("tools", lists): 1})
        names = sorted(f"extra_{i}" for i in range(1, 21))
        check("5 add 20 tools: tools/list has the 20", names, await extras(), ears, mark)
        mark = ears.mark()
        await peer.call("remove_tools")
        await exactly("5 remove the tools: exactly one more", ears, mark, {at("tools", lists): 1})
        check("5 remove the tools: tools/list has none of them", [], await extras(), ears, mark)

    async with step("7 stop", ears):
        mark = ears.mark()
        if watch:
            await watch.close()
        else:
            await peer.unsubscribe(WATCHED)
        await peer.call("touch_watched", n=1, gap_ms=0)
        name = "7 after closing the listen: no notice" if modern else "7 after unsubscribe: no notice"
        await exactly(name, ears, mark, {})

    if lists:
        async with step("8 two listens", ears):
            await overlap(peer, lists)

    if second and second_mark:
        async with step("6 second client", second.ears):
            # A legacy session cannot decline list notices: the two of step 5 are its due, and nothing else is.
            if modern:
                await exactly("6 second client: heard nothing", second.ears, second_mark, {})
            else:
                name = "6 second client: no update, only the two tool notices"
                await exactly(name, second.ears, second_mark, {"tools": 2})
            check("6 second client: no error from the SDK", [], second.ears.errors, second.ears)
            if modern:
                await second_listen.close()
    if second and second_context:
        async with step("6 second client: close", second.ears):
            await second_context.__aexit__(None, None, None)
    check("9 no error from the SDK", [], ears.errors, ears)


async def overlap(peer: Peer, lists: Listen) -> None:
    ears = peer.ears
    mark = ears.mark()
    await lists.close()
    asked_a = {"resourceSubscriptions": [WATCHED], "toolsListChanged": True}
    asked_b = {"resourceSubscriptions": [STATIC, WATCHED]}
    a = await peer.listen(resource_subscriptions=[WATCHED], tools_list_changed=True)
    b = await peer.listen(resource_subscriptions=[STATIC, WATCHED])
    honoured = [filter_of(**a.honored), filter_of(**b.honored)]
    check("8 two listens: acknowledged filters", [asked_a, asked_b], honoured, ears)

    def updated(*listens: Listen) -> Counts:
        return {f"updated {WATCHED} @{listen.id}": 1 for listen in listens}

    await peer.call("touch_watched", n=1, gap_ms=0)
    await exactly("8 two listens: each gets its own copy", ears, mark, updated(a, b))
    mark = ears.mark()
    await peer.call("add_tools", n=3, gap_ms=0)
    await exactly("8 two listens: only the one that asked hears of tools", ears, mark, {f"tools @{a.id}": 1})
    mark = ears.mark()
    await a.close()
    await peer.call("touch_watched", n=1, gap_ms=0)
    await peer.call("remove_tools")
    await exactly("8 closing one leaves the other", ears, mark, updated(b))

    mark = ears.mark()
    c = await peer.listen(resource_subscriptions=[WATCHED, UNKNOWN], tools_list_changed=True)
    check("8 an unknown URI is not acknowledged, the rest is", asked_a, filter_of(**c.honored), ears)
    await peer.call("touch_watched", n=1, gap_ms=0)
    await exactly("8 the acknowledged rest is served", ears, mark, updated(b, c))
    mark = ears.mark()
    await b.close()
    await c.close()
    await peer.call("touch_watched", n=1, gap_ms=0)
    await exactly("8 after closing all: no notice", ears, mark, {})


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=list(VERSIONS), required=True)
    parser.add_argument("--transport", choices=["stdio", "http"], required=True)
    parser.add_argument("--server")
    parser.add_argument("--url")
    options = parser.parse_args()
    if not (options.server if options.transport == "stdio" else options.url):
        parser.error("stdio needs --server, http needs --url")
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # subscribe_resource is deprecated, and meant here
    complaints = Complaints()
    logging.getLogger("mcp").addHandler(complaints)
    opened = None
    try:
        async with connected(options) as peer:
            opened = peer
            await judge(options, peer)
    except BaseException:
        # A peer that never opened, or one that the SDK tore down under way.
        name = "9 close" if opened else "1 connect"
        log = (opened.ears.log if opened else [])[-60:] + complaints.texts
        say(check=name, ok=False, expected="no error", got=traceback.format_exc(), log=log)
    say(check="9 no complaint in the SDK's log", ok=not complaints.texts, expected=[], got=complaints.texts)
    say(done=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
