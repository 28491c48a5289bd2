"""What adversaries that know the rule win back: tables, figures, findings and the page."""
