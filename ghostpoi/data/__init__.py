"""Check-ins, venues, sessions and candidate sets."""
