"""The report: one self-contained page about a release, for a publisher, a reviewer or a lawyer.

The public page lies in the release and holds nothing that the release does not: released rows, the manifest's single
figures. The private page, with clean rows beside released ones, lies in the private folder and says so everywhere.
"""
