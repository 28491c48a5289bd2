"""The generated blocks of the pages. The prose around them is written in the pages.

    python -m docs.blocks

fills all blocks and draws the figures of the result pages. A block lies between `<!-- block: NAME WORDS -->` and
`<!-- end -->`. tests/results/ fails where a block is stale, and where a sentence contradicts the results.
"""
