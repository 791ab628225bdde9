"""A server made with the Python SDK's `MCPServer` as its documentation shows it: a tool adds tools."""

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("judge-plain", version="1.0.0")
calls = 0


@mcp.tool()
def grow() -> str:
    """Adds one more tool"""
    global calls
    calls += 1
    name = f"extra_{calls}"

    def extra() -> str:
        return name

    mcp.add_tool(extra, name=name)
    return name


@mcp.resource("test://counter")
def counter() -> str:
    """How many tools were added"""
    return str(calls)


mcp.run()
