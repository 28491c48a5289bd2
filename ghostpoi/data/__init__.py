"""Check-ins, venues, sessions and candidate sets: reading and preparation."""
