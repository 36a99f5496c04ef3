"""Explanations of the table of frameworks, by patterns of the differences that it shows."""

EXPLAINED = [
    (r"here only: content-length: \d+(; there only: transfer-encoding: chunked)?",
     "The application gave no Content-Length, but all of the content in one piece: here the"
     " response has its length, there it is sent in chunks (a response to HEAD has neither)."),
]
