"""Charts of the page, one module per section. A chart is a plotly figure with a title and a caption."""
