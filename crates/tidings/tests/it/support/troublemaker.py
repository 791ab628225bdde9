"""A legacy MCP server over stdio that does what servers should not do, on command.

It needs nothing but Python 3.11 and knows nothing of our code. How it begins is in the variable
TROUBLE, words separated by spaces; the rest is done with its tools.

    endless       the cursors of `tools/list` never end
    looping       the cursor of `tools/list` leads to itself
    empty-cursor  the tools come in two pages, and the cursor of the second is ""
    duplicates    two tools have one name
    shuffled      lists come in another order each time
    early         a notice comes 200 ms before the change can be read
    silent        `listChanged` is false, and no notice is sent
    unasked       no capability says `listChanged`, and notices are sent
    no-prompts    `prompts` is advertised, and `prompts/list` is -32601
    broken-list   `resources/list` is an internal error
    no-subscribe  resources cannot be subscribed to
    stubborn      neither the end of its input nor SIGTERM ends it, and it has a child like it
    noise         lines that are not messages, on standard output and standard error
    late          the answer to `initialize` takes a second

TROUBLE_STATE names a file: tools and the note are read from it at the start and written to it, so that
a restart has them. TROUBLE_LOG names a file that every received message is appended to.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

TROUBLE = set(os.environ.get("TROUBLE", "").split())
EARLY = 0.2
PAGE = 2

output = threading.Lock()
state_lock = threading.Lock()
asked = {}  # How often each method was asked for.
waiting = {}  # Questions to the client: id -> (event, answer).
subscribed = set()
cancelled = {}  # Calls: id -> event that is set when the client cancels.
state = {"tools": {}, "note": "first", "reads": 0}
visible = None  # What lists show while a change is announced early.


def write(message):
    line = json.dumps(message, separators=(",", ":"))
    with output:
        if "noise" in TROUBLE:
            sys.stdout.write("loading plugins...\n{\"half\": \n")
            sys.stderr.write("warning: everything is fine\n")
            sys.stderr.flush()
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def raw(line):
    with output:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def notify(method, **params):
    write({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params})


def save():
    path = os.environ.get("TROUBLE_STATE")
    if path:
        with open(path + ".new", "w") as file:
            json.dump(state, file)
        os.replace(path + ".new", path)


def changed(kind):
    save()
    if "silent" not in TROUBLE:
        notify(f"{kind}/list_changed")


def tool(name, description, /, **properties):
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description, "inputSchema": schema}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TOOLS = [
    tool("add", "Adds a tool, or changes its description", name=TEXT, description=TEXT),
    tool("remove", "Removes a tool", name=TEXT),
    tool("notify", "Sends list_changed so often, without a change", kind=TEXT, times=NUMBER),
    tool("write", "Writes the note", text=TEXT),
    tool("touch", "Says that the note was updated, without a change", times=NUMBER),
    tool("echo", "Returns its arguments"),
    tool("strange", "Returns what nobody knows"),
    tool("fail", "Is an error with data"),
    tool("die", "Ends the server before it answers"),
    tool("wait", "Answers after so many milliseconds, with progress", ms=NUMBER, steps=NUMBER),
    tool("ask", "Asks the client: elicitation, url, sampling or roots", kind=TEXT, ms=NUMBER),
    tool("flood", "Sends so many notices of the note", times=NUMBER),
    tool("long", "Returns a text of so many bytes", bytes=NUMBER),
    tool("asked", "How often each method was asked for, and the ids of the processes"),
    tool("log", "Sends a log line of every level"),
]


def tools():
    shown = visible if visible is not None else state["tools"]
    every = TOOLS + [tool(name, words) for name, words in shown.items()]
    if "duplicates" in TROUBLE:
        every.append(tool("echo", "The second of its name"))
    if "shuffled" in TROUBLE:
        random.shuffle(every)
    return every


def tools_page(cursor):
    if "endless" in TROUBLE:
        number = int(cursor or 0)
        return {"tools": [tool(f"t{number}", "One of many")], "nextCursor": str(number + 1)}
    if "looping" in TROUBLE:
        return {"tools": tools()[:PAGE], "nextCursor": "again"}
    if "empty-cursor" in TROUBLE:
        every = tools()
        if cursor is None:
            return {"tools": every[:PAGE], "nextCursor": ""}
        return {"tools": every[PAGE:]}
    return {"tools": tools()}


RESOURCES = [
    {"uri": "trouble://note", "name": "note", "mimeType": "text/plain"},
    {"uri": "trouble://time", "name": "time", "mimeType": "text/plain"},
]


def read(uri):
    if uri == "trouble://note":
        return state["note"]
    if uri == "trouble://time":
        with state_lock:
            state["reads"] += 1
        return f"read {state['reads']} times"
    if uri.startswith("trouble://item/"):
        return "item " + uri.removeprefix("trouble://item/")
    raise Refused(-32002, "Resource not found", {"uri": uri})


class Refused(Exception):
    def __init__(self, code, message, data=None):
        self.error = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


# Key order, numbers beyond 53 bits, unknown kinds and fields: all of it must survive.
STRANGE = (
    '{"zeta":1,"content":[{"type":"text","text":"known","annotations":{"audience":["user"],'
    '"mood":"odd"}},{"type":"hologram","depth":9223372036854775807,"beam":1e300,"a":null},'
    '{"uri":"trouble://item/7","type":"resource_link","name":"seven","extra":{"b":1,"a":2}}],'
    '"structuredContent":null,"isError":false,"_meta":{"example.org/trace":18446744073709551615},'
    '"alpha":[1.0,-0.0,1E+2]}'
)


def text(words, is_error=False):
    result = {"content": [{"type": "text", "text": words}]}
    return result | {"isError": True} if is_error else result


def change_tools(arguments, removes):
    global visible
    before = dict(state["tools"])
    with state_lock:
        if removes:
            state["tools"].pop(arguments["name"], None)
        else:
            state["tools"][arguments["name"]] = arguments.get("description", "Added")
        visible = before if "early" in TROUBLE else None
    changed("tools")
    if "early" in TROUBLE:
        time.sleep(EARLY)
        visible = None
    return text("done")


def ask(arguments, stop):
    """Asks the client in the middle of a call, and returns its answer as text."""
    time.sleep(arguments.get("ms", 0) / 1000)
    kind = arguments.get("kind", "elicitation")
    method, params = {
        "elicitation": ("elicitation/create", {
            "mode": "form", "message": arguments.get("message", "Your name?"),
            "requestedSchema": {"type": "object", "properties": {"name": TEXT}},
        }),
        "url": ("elicitation/create", {
            "mode": "url", "message": "Sign in", "url": "https://example.org/sign-in", "elicitationId": "e1",
        }),
        "sampling": ("sampling/createMessage", {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say a word"}}],
            "maxTokens": 10, "modelPreferences": {"hints": [{"name": "small"}]},
        }),
        "roots": ("roots/list", {}),
    }[kind]
    number = f"question-{random.getrandbits(64):x}"
    event, answer = threading.Event(), {}
    waiting[number] = (event, answer)
    write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    while not event.wait(0.05):
        if stop.is_set():
            return None
    return text(json.dumps(answer.get("result", answer.get("error"))))


def call(request, stop):
    params = request["params"]
    name, arguments = params["name"], params.get("arguments") or {}
    times = arguments.get("times", 1)
    if name in state["tools"]:
        return text(f"{name} was called")
    match name:
        case "add" | "remove":
            return change_tools(arguments, name == "remove")
        case "notify":
            for _ in range(times):
                notify(f"{arguments.get('kind', 'tools')}/list_changed")
        case "write":
            state["note"] = arguments["text"]
            save()
            if "trouble://note" in subscribed:
                notify("resources/updated", uri="trouble://note")
        case "touch":
            for _ in range(times):
                notify("resources/updated", uri="trouble://note")
        case "flood":
            for number in range(times):
                notify("resources/updated", uri=f"trouble://item/{number % 10}")
                notify("tools/list_changed")
        case "echo":
            return text(json.dumps(arguments)) | {"_meta": params.get("_meta", {})}
        case "strange":
            raw(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{STRANGE}}}')
            return None
        case "fail":
            raise Refused(-32050, "The tool is on fire", {"depth": 2**63, "by": "design"})
        case "die":
            os._exit(3)
        case "wait":
            return wait(arguments, (params.get("_meta") or {}).get("progressToken"), stop)
        case "ask":
            return ask(arguments, stop)
        case "long":
            return text("x" * arguments["bytes"])
        case "asked":
            return text(json.dumps({"asked": asked, "pids": pids, "cancelled": sum(e.is_set() for e in cancelled.values())}))
        case "log":
            for level in ["debug", "info", "warning", "error"]:
                notify("message", level=level, logger="trouble", data=f"a line of {level}")
        case _:
            raise Refused(-32602, f"Unknown tool: {name}")
    return text("done")


def wait(arguments, token, stop):
    steps = arguments.get("steps", 1)
    for step in range(steps):
        if stop.wait(arguments.get("ms", 100) / 1000 / steps):
            return None
        if token is not None:
            notify("progress", progressToken=token, progress=step + 1, total=steps)
    return text("waited")


def capabilities():
    told = {} if TROUBLE & {"silent", "unasked"} else {"listChanged": True}
    if "silent" in TROUBLE:
        told = {"listChanged": False}
    return {
        "tools": told,
        "prompts": told,
        "resources": told | ({} if "no-subscribe" in TROUBLE else {"subscribe": True}),
        "completions": {},
        "logging": {},
    }


def answer(request, stop):
    method, params = request["method"], request.get("params") or {}
    match method:
        case "initialize":
            if "late" in TROUBLE:
                time.sleep(1)
            return {
                "protocolVersion": "2025-11-25", "capabilities": capabilities(),
                "serverInfo": {"name": "troublemaker", "version": "1"}, "instructions": "Beware.",
            }
        case "ping" | "logging/setLevel":
            return {}
        case "tools/list":
            return tools_page(params.get("cursor"))
        case "tools/call":
            return call(request, stop)
        case "prompts/list" if "no-prompts" not in TROUBLE:
            return {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}
        case "prompts/get":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}]}
        case "resources/list" if "broken-list" in TROUBLE:
            raise Refused(-32603, "The shelf fell over")
        case "resources/list":
            return {"resources": random.sample(RESOURCES, 2) if "shuffled" in TROUBLE else RESOURCES}
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "trouble://item/{id}", "name": "item"}]}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": read(params["uri"])}]}
        case "resources/subscribe" if "no-subscribe" not in TROUBLE:
            subscribed.add(params["uri"])
            return {}
        case "resources/unsubscribe" if "no-subscribe" not in TROUBLE:
            subscribed.discard(params["uri"])
            return {}
        case "completion/complete":
            return {"completion": {"values": ["one", "two"], "total": 500, "hasMore": True}}
    raise Refused(-32601, f"Method not found: {method}")


def handle(request):
    stop = cancelled.setdefault(request["id"], threading.Event())
    try:
        result = answer(request, stop)
        if result is not None:
            write({"jsonrpc": "2.0", "id": request["id"], "result": result})
    except Refused as refused:
        write({"jsonrpc": "2.0", "id": request["id"], "error": refused.error})
    except (KeyError, TypeError) as error:
        told = {"code": -32602, "message": f"Invalid params: {error!r}"}
        write({"jsonrpc": "2.0", "id": request["id"], "error": told})


def begin():
    path = os.environ.get("TROUBLE_STATE")
    if path and os.path.exists(path):
        with open(path) as file:
            state.update(json.load(file))
    if "stubborn" not in TROUBLE:
        return [os.getpid()]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    return [os.getpid(), subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.DEVNULL).pid]


pids = begin()
log = os.environ.get("TROUBLE_LOG")
for line in sys.stdin:
    message = json.loads(line)
    if log:
        with open(log, "a") as file:
            file.write(line)
    method = message.get("method")
    if method is None:
        event, kept = waiting.pop(message.get("id"), (None, None))
        if event:
            kept.update(message)
            event.set()
        continue
    asked[method] = asked.get(method, 0) + 1
    if method == "notifications/cancelled":
        cancelled.get(message["params"]["requestId"], threading.Event()).set()
    elif "id" in message:
        # In order: only calls take time.
        if method == "tools/call":
            threading.Thread(target=handle, args=[message], daemon=True).start()
        else:
            handle(message)
while "stubborn" in TROUBLE:
    time.sleep(3600)
