"""`python -m holdfast.cli`: the command line without its installed script."""

from holdfast.cli import main

if __name__ == "__main__":
    main(prog_name="holdfast")
