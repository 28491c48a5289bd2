"""Speed, shown as ratios that are measured in one run on one machine."""
