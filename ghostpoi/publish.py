"""The publisher: methods, rounds of substitution, the release folder and its verification."""
