"""Shows the three tiers of the Offvia demo by SQL, and fails when they do not hold as many rows as expected.

Python because its sqlite3 module is on every machine that has Python, and a SQLite of our own would take minutes to build.
"""

import argparse
import sqlite3
import sys

TIERS = {
    "bronze": (
        "raw_bookings",
        "SELECT message_id, substr(data, 1, 100) AS raw_preview FROM raw_bookings ORDER BY rowid",
    ),
    "silver": (
        "fact_bookings",
        "SELECT booking_id, flight_number, origin_airport, destination_airport, fare_amount, event_timestamp"
        " FROM fact_bookings ORDER BY rowid",
    ),
    "quarantine": (
        "poisoned_events",
        "SELECT error_stage, error_reason, raw_payload FROM poisoned_events ORDER BY rowid",
    ),
}


def shown(value):
    """One line for any value: a payload keeps its bytes, and its newlines become spaces."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    return " ".join(str(value).split())


def show(database, tier):
    """Prints one tier and returns its number of rows."""
    table, query = TIERS[tier]
    cursor = database.execute(query)
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    print(f"\n{tier}: {len(rows)} {'row' if len(rows) == 1 else 'rows'} in {table}")
    print(f"  {query}")
    width = max(map(len, names))
    for number, row in enumerate(rows, start=1):
        print(f"  {number}.")
        for name, value in zip(names, row):
            print(f"     {name:<{width}}  {shown(value)}")
    return len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database")
    for tier in TIERS:
        parser.add_argument(f"--{tier}", type=int, required=True, metavar="ROWS")
    arguments = parser.parse_args()

    # Read-only: a wrong path is an error here, where a plain connect would make an empty database of it.
    database = sqlite3.connect(f"file:{arguments.database}?mode=ro", uri=True)
    wrong = []
    for tier in TIERS:
        expected = getattr(arguments, tier)
        found = show(database, tier)
        if found != expected:
            wrong.append(f"{tier} has {found} rows, expected {expected}")
    database.close()
    sys.stdout.flush()
    if wrong:
        sys.exit("error: " + "; ".join(wrong))
    print(f"\nAs expected: {arguments.bronze} bronze, {arguments.silver} silver, {arguments.quarantine} quarantine.")


if __name__ == "__main__":
    main()
