"""A server made with FastMCP, as its documentation shows it."""
from fastmcp import FastMCP, Context
mcp = FastMCP("judge-fastmcp", version="1.0.0")
state = {"count": 0}

@mcp.tool
def touch() -> str:
    """Changes the counter"""
    state["count"] += 1
    return str(state["count"])

@mcp.tool
def grow() -> str:
    """Adds one more tool"""
    state["count"] += 1
    name = f"extra_{state['count']}"
    def extra() -> str:
        return name
    mcp.tool(extra, name=name)
    return name

@mcp.resource("test://counter")
def counter() -> str:
    return str(state["count"])

mcp.run(show_banner=False)
