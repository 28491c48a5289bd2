"""The studio: the whole way from a file to a published release in a browser, on this machine alone.

The server holds no data and does no work. What takes time runs in a child process, one at a time, which calls the
Python API and leaves its answer in the private folder of the file; so a reload shows it and a restart goes on with it.
Starlette and uvicorn serve the pages: small, maintained, and without a framework of their own in the browser.
"""
