"""What the table of frameworks may show, and why: of words that say in what answers differ."""

EXPLAINED = [
    (r"here only: content-length: \d+(; there only: transfer-encoding: chunked)?",
     "The application gave no Content-Length, but all of the content in one piece: here the answer"
     " has its length, there it is sent in chunks (an answer to HEAD has neither)."),
]
