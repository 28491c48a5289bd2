"""Series of releases: crowds, popularity, pseudonyms and draws that stay the same from release to release.

A release that stands alone builds its crowds from its own file. A venue then has another crowd every month, and only
the visited venue is in all of them. A series folder keeps what must not change, and a ledger of what was released.
"""
