"""Processes as an engine has them: deployed as files, known on every node, compiled when they are needed, and started.

`deploying` writes deployments; `known_definitions` is what this node knows of all of them; `deployed_processes` makes
programs of them, which `compiling` compiles outside of turns.
"""
