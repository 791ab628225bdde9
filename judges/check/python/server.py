"""A server made with FastMCP as its documentation shows it: a tool adds tools, and a counter counts."""

from fastmcp import FastMCP

mcp = FastMCP("judge-fastmcp", version="1.0.0")
calls = 0


@mcp.tool
def grow() -> str:
    """Adds one more tool"""
    global calls
    calls += 1
    name = f"extra_{calls}"

    def extra() -> str:
        return name

    mcp.tool(extra, name=name)
    return name


@mcp.resource("test://counter")
def counter() -> str:
    """How many tools were added"""
    return str(calls)


mcp.run(show_banner=False)
