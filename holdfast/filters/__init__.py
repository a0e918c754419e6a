"""The filter language of lists: text to a tree of frozen values, and what that means for one execution. Pure.

    status = 'running' AND state.amount > 100 AND NOT workflow_id STARTS WITH 'test-'

`lexer` makes tokens, `parser` a tree (`syntax`) whose values stand as stores keep them, `evaluating` says whether an
execution is selected; stores compile the same tree to SQL.
"""
