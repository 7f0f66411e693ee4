"""Models that tools compile: those of a folder, and those that a file lists."""
import pathlib
import shlex

# The flags of a model of a folder, whose unknown dimensions are 1, and what tfaot says of a model that has none.
ONES = ["--dim", "1"]
NO_DIMENSION = "TFA0007"


def models(folder, listed, order=None):
    """Name, graph and flags of each folder in `folder` that holds `model.json`, `frozen.pb` or `saved_model`, sorted by `order`, a function of
    the path; and of each line `NAME GRAPH FLAGS` of the file `listed`. Either may be None."""
    for path in sorted(pathlib.Path(folder).iterdir(), key=order) if folder else []:
        graph = next((path / g for g in ("model.json", "frozen.pb", "saved_model") if (path / g).exists()), None)
        if graph:
            yield path.name, graph, ONES
    for line in open(listed) if listed else []:
        words = shlex.split(line, comments=True)
        if words:
            yield words[0], words[1], words[2:]
