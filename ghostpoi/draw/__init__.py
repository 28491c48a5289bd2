"""Draw released venues: crowds and channels, walks through sessions, the scores of models, and the methods."""
