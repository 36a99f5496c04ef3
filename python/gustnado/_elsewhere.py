"""What other threads ask of an exchange is done on the thread of its loop."""


async def on_the_loop(function, *arguments):
    """Calls `function` once this is awaited."""
    return await function(*arguments)
