"""Check-ins, venues, sessions and candidate sets: what is read and how it is prepared."""
