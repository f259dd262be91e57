"""What the host is measured against: ShopFlow's Beam pipeline that cleans orders, on Beam's DirectRunner.

The steps and the function are those of the shop's own pipeline: read lines, drop duplicates, clean, write. Two things differ.
Silver is written as JSON lines, since BigQuery is not on this machine; WriteToBigQuery writes such files too, and then has
them loaded, so this is less work than there. And what the pipeline has written is counted afterwards.

    python shopflow_silver_orders.py --input 'DIR/orders-*.csv' --silver OUT/silver --rejected OUT/rejected

Prints one line of JSON: rows of silver, rejected lines, seconds of the pipeline without the start of Python.
"""

import argparse
import csv
import glob
import json
import time
from datetime import datetime

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

STATUSES = {"placed", "shipped", "delivered", "cancelled"}


def clean(line):
    try:
        order_id, customer_id, channel, order_ts, status, currency, promo_id = next(csv.reader([line]))
        row = {
            "order_id": int(order_id),
            "customer_id": int(customer_id),
            "channel": channel.strip().lower(),
            "order_ts": datetime.strptime(order_ts, "%Y-%m-%d %H:%M:%S").isoformat(),
            "status": status.strip().lower(),
            "currency": currency.strip().upper() or "USD",
            "promo_id": int(promo_id) if promo_id else None,
        }
        if row["status"] not in STATUSES:
            raise ValueError(f"unknown status {row['status']!r}")
        yield row
    except ValueError:
        yield beam.pvalue.TaggedOutput("rejected", line)


def run(arguments, beam_arguments):
    with beam.Pipeline(options=PipelineOptions(beam_arguments)) as p:
        rows = (
            p
            | "Read CSV" >> beam.io.ReadFromText(arguments.input, skip_header_lines=1)
            | "Drop duplicate lines" >> beam.Distinct()
            | "Clean" >> beam.FlatMap(clean).with_outputs("rejected", main="clean")
        )
        (
            rows.clean
            | "As JSON" >> beam.Map(json.dumps)
            | "Write Silver" >> beam.io.WriteToText(arguments.silver, file_name_suffix=".ndjson")
        )
        rows.rejected | "Write rejected" >> beam.io.WriteToText(arguments.rejected, file_name_suffix=".csv")


def lines(prefix, suffix):
    """Lines in the shards of an output."""
    count = 0
    for path in glob.glob(f"{glob.escape(prefix)}-*-of-*{suffix}"):
        with open(path, "rb") as file:
            count += sum(1 for _ in file)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True, help="files of orders, with wildcards")
    parser.add_argument("--silver", required=True, help="where silver goes: the beginning of the names")
    parser.add_argument("--rejected", required=True, help="where rejected lines go: the beginning of the names")
    arguments, beam_arguments = parser.parse_known_args()
    started = time.perf_counter()
    run(arguments, beam_arguments)
    seconds = time.perf_counter() - started
    counts = {"silver": lines(arguments.silver, ".ndjson"), "rejected": lines(arguments.rejected, ".csv")}
    print(json.dumps({**counts, "seconds": seconds}))


if __name__ == "__main__":
    main()
