"""Shows what became of generated orders, by SQL and from the files, and fails when it is not what was to come of them.

Python because its sqlite3 module is on every machine that has Python, and a SQLite of our own would take minutes to build.
"""

import argparse
import glob
import json
import os
import sqlite3
import sys

BY_STATUS = "SELECT status, COUNT(*) FROM orders GROUP BY status ORDER BY COUNT(*) DESC"


def rejected_lines(prefix):
    """The lines of all shards, as bytes with their ends."""
    lines = []
    for path in sorted(glob.glob(f"{glob.escape(prefix)}-*-of-*.csv")):
        print(f"  {path}")
        with open(path, "rb") as file:
            lines += file.readlines()
    return lines


def lines_read(directory):
    """Lines of the input files without their headers."""
    count = 0
    for path in glob.glob(f"{glob.escape(directory)}/*.csv"):
        with open(path, "rb") as file:
            count += sum(1 for _ in file) - 1
    return count


class Checks:
    """Prints what is found, and keeps what is not as expected."""

    def __init__(self):
        self.wrong = []

    def count(self, what, found, expected):
        print(f"{what:<24} {found:>8,}")
        self.ok(found == expected, f"{what.strip()}: {found}, expected {expected}")

    def ok(self, is_so, otherwise):
        if not is_so:
            self.wrong.append(otherwise)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("orders", help="the directory that was generated")
    parser.add_argument("database")
    parser.add_argument("rejected", help="where rejected lines are: the beginning of the names")
    parser.add_argument("--report", help="the run's report, as JSON")
    arguments = parser.parse_args()

    expected_directory = os.path.join(arguments.orders, "expected")
    with open(os.path.join(expected_directory, "counts.json"), encoding="utf-8") as file:
        expected = json.load(file)
    with open(os.path.join(expected_directory, "rejected.csv"), "rb") as file:
        expected_rejected = file.readlines()

    checks = Checks()
    checks.count("lines", lines_read(arguments.orders), expected["lines"])
    if arguments.report:
        with open(arguments.report, encoding="utf-8") as file:
            report = json.load(file)
        checks.count("  read", report["events"], expected["lines"])
        checks.count("  duplicates", report["duplicates"], expected["duplicates"])

    # Read-only: a wrong path is an error here, where a plain connect would make an empty database of it.
    database = sqlite3.connect(f"file:{arguments.database}?mode=ro", uri=True)
    (silver,) = database.execute("SELECT COUNT(*) FROM orders").fetchone()
    checks.count("silver", silver, expected["accepted"])
    for status, orders in database.execute(BY_STATUS):
        checks.count(f"  {status}", orders, expected["by_status"].get(status))
    database.close()

    rejected = rejected_lines(arguments.rejected)
    checks.count("rejected", len(rejected), expected["rejected"])
    same = sorted(rejected) == sorted(expected_rejected)
    checks.ok(same, "rejected lines are not byte for byte those of the input")
    if same:
        print("  byte for byte as they stand in the files, the first of them:")
        for line in rejected[:3]:
            print(f"    {line.decode('utf-8').rstrip()}")
    sys.stdout.flush()
    if checks.wrong:
        sys.exit("error: " + "; ".join(checks.wrong))
    print("As expected.")


if __name__ == "__main__":
    main()
