"""The ten requests on Starlette with Strawberry's GraphQL: a query and a mutation more, and a
subscription by either protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator

import strawberry
from starlette_site import app
from strawberry.asgi import GraphQL

notes = []


@strawberry.type
class Query:
    @strawberry.field
    async def notes(self) -> list[str]:
        return notes


@strawberry.type
class Mutation:
    @strawberry.mutation
    async def note(self, text: str) -> int:
        notes.append(text)
        return len(notes)


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int) -> AsyncGenerator[int, None]:
        for number in range(to):
            yield number
            await asyncio.sleep(0.001)


app.mount("/graphql", GraphQL(strawberry.Schema(Query, Mutation, Subscription)))


def more(ask):
    for name, text in [("mutation", 'mutation { note(text: "one") }'), ("query of it", "{ notes }"),
                       ("query of what is not there", "{ none }")]:
        yield name, ask("POST", "/graphql/", ["Content-Type: application/json"],
                        json.dumps({"query": text}).encode())


def talk(connect):
    for protocol, begin in [("graphql-transport-ws", "subscribe"), ("graphql-ws", "start")]:
        said = []
        with connect("/graphql/", subprotocols=[protocol]) as link:
            def tell(type, link=link, **more):
                link.send(json.dumps({"type": type, **more}))

            tell("connection_init")
            tell(begin, id="1", payload={"query": "subscription { count(to: 3) }"})
            while not said or '"complete"' not in said[-1]:
                said.append(link.recv(timeout=10))
        assert sum('"count"' in one for one in said) == 3, said
        yield f"subscription by {protocol}", " ".join(said)
