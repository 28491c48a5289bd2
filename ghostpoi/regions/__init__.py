"""Tables larger than memory: read piece by piece, protected region by region, written part by part.

Venues that are far apart cannot replace each other, so regions are independent. The stages, in the order of the data
flow: `divide` reads each piece and lists its venues and users, joins the lists, parts the venues into regions, divides
each piece by region and finds who travels; `columns` tests what each column reveals; `protect` draws
region by region and puts the parts of the release together. Rows go from pieces to regions and back in packs. A stage
is a function of a job and a number; its output is a folder that appears when it is complete. So a stage that was
interrupted, or that ran twice, changes nothing, and an engine may run it anywhere. Only the division into regions runs
in the main process: it needs the positions of all venues at once.
"""
