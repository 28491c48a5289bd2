"""Run the command line as `python -m ghostpoi`."""

from ghostpoi.cli import main

if __name__ == "__main__":
    main()
