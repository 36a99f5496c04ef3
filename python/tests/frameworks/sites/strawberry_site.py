"""The ten requests on Starlette with Strawberry's GraphQL: a query and a mutation more."""

import json

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


app.mount("/graphql", GraphQL(strawberry.Schema(Query, Mutation)))


def more(ask):
    for name, text in [("mutation", 'mutation { note(text: "one") }'), ("query of it", "{ notes }"),
                       ("query of what is not there", "{ none }")]:
        yield name, ask("POST", "/graphql/", ["Content-Type: application/json"],
                        json.dumps({"query": text}).encode())
