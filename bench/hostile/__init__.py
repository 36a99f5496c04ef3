"""The parts of `bench/hostile.py`: a server, an honest client, attackers, and the verdict."""
