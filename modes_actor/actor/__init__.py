"""Reader, processor and writer: the three tasks between stdin and stdout, and what they keep.

Knows JSON-RPC framing and the two protocol eras; knows no tool, no resource and no mode.
"""
