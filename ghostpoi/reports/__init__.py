"""The report: an offline page about a release, its dataset card and its Croissant metadata.

The public page lies in the release and uses nothing but released rows and the manifest. The private page shows clean
rows next to released ones. It lies in the private folder and carries a banner that says so.
"""
