"""tlsfuzzer's conversations that fare otherwise here, by the reason; the names are tlsfuzzer's.

Each group has its reason, the layer of records that it holds for, and patterns by script.
"""

OLD_HELLO = "x"
KNOWN = []
