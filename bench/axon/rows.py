"""Rows of the paper's shape from real data: ten columns of numbers and a label.

Beijing's hourly weather and air (UCI, 2010 to 2014): year, month, day, hour, dew point, temperature,
pressure, wind, snow and rain; the label says whether PM2.5 was above 75 µg/m³. There are 41,757 hours
that were measured. Larger sizes repeat them in the same order, each number moved by at most a
thousandth of its column's deviation, so that repeated rows are neither equal nor compress as if they
were. Eight decimals make 118 bytes a row: 780,000 rows are 92 MB, as the paper's 90.
"""
import csv
import gzip
import itertools
import pathlib
import random

COLUMNS = ("year", "month", "day", "hour", "DEWP", "TEMP", "PRES", "Iws", "Is", "Ir")
LABEL = "polluted"


def measured(data):
    path = pathlib.Path(data) / "sequence/beijing_pollution.csv.gz"
    with gzip.open(path, "rt") as file:
        return [([float(row[name]) for name in COLUMNS], int(float(row["pm2.5"]) > 75))
                for row in csv.DictReader(file) if row["pm2.5"] != "NA"]


def scaled(rows):
    columns = list(zip(*(values for values, _ in rows)))
    means = [sum(column) / len(rows) for column in columns]
    deviations = [(sum((x - mean) ** 2 for x in column) / len(rows)) ** 0.5
                  for column, mean in zip(columns, means)]
    return [([(x - mean) / deviation for x, mean, deviation in zip(values, means, deviations)], label)
            for values, label in rows]


def write(data, sizes, folder):
    """One file for each size; a smaller one is the beginning of the larger. Returns them by size."""
    chance = random.Random(1)
    rows = measured(data)
    chance.shuffle(rows)
    rows = scaled(rows)
    line = "%.8f," * len(COLUMNS) + "%d\n"
    paths = {size: pathlib.Path(folder) / f"rows-{size}.csv" for size in sizes}
    files = {size: path.open("w") for size, path in paths.items()}
    for file in files.values():
        file.write(",".join((*COLUMNS, LABEL)) + "\n")
    for index, (values, label) in enumerate(itertools.islice(itertools.cycle(rows), max(sizes))):
        text = line % (*(x + (chance.random() - 0.5) * 2e-3 for x in values), label)
        for size, file in files.items():
            if index < size:
                file.write(text)
    for file in files.values():
        file.close()
    return paths
