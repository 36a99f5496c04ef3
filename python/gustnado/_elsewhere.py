"""Moves calls of an exchange from other threads to the thread of its loop."""


async def on_the_loop(function, *arguments):
    """Calls `function` once this is awaited."""
    return await function(*arguments)
