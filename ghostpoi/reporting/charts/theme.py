"""Colours of the charts. They are drawn in those of the light page; the dark page replaces each by its counterpart."""

# Okabe-Ito, distinct with any colour vision. The dark page uses the brighter ones of the same palette.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#a8497f"
INK, MUTED, GRID, SURFACE, FAINT, INSIDE = "#1b2126", "#57616b", "#e3e6e8", "#ffffff", "#b9c0c6", "#fffffe"

DARK = {
    BLUE: "#56b4e9", VERMILLION: "#e69f00", GREEN: "#1bbf90", PURPLE: "#e39cc4", INK: "#e9ecee", MUTED: "#a7b1ba",
    GRID: "#343b42", SURFACE: "#1a1e22", FAINT: "#4d565e", INSIDE: "#101316",  # INSIDE: text on a bar
}  # fmt: skip
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, INK)
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
