"""What the host is measured against: the Offvia pipeline's own Python validation, in a bare loop.

The steps, the order of the checks and the record are those of the pipeline's Beam DoFn. Beam itself is left out (a tuple
stands where it wraps a value), so this is the fastest that the Python function can be.

    python3 offvia_baseline.py FILE --seconds S

FILE holds one payload a line. Prints one line of JSON.
"""

import argparse
import json
import sys
import time
from datetime import datetime, timezone
from decimal import Decimal, InvalidOperation
from itertools import islice

QUARANTINE = "quarantine"

# Events between two looks at the clock.
CHUNK = 1000


def validate(data, message_id):
    """Yields (QUARANTINE, row) for a rejected payload, (event time in seconds, record) for an accepted one."""
    raw_payload = data.decode("utf-8", errors="replace")
    received_at = datetime.now(timezone.utc).isoformat()

    def reject(stage, reason):
        return (
            QUARANTINE,
            {
                "raw_payload": raw_payload,
                "error_reason": reason,
                "error_stage": stage,
                "received_timestamp": received_at,
                "source_message_id": message_id,
            },
        )

    try:
        payload = json.loads(raw_payload)
    except json.JSONDecodeError as exc:
        yield reject("PARSE_JSON", str(exc))
        return

    required = {
        "booking_id",
        "passenger_id",
        "flight_number",
        "origin",
        "destination",
        "fare",
        "event_time",
    }
    missing = sorted(required - payload.keys())
    if missing:
        yield reject("SCHEMA_VALIDATION", f"Missing required fields: {', '.join(missing)}")
        return

    try:
        fare = Decimal(str(payload["fare"]))
        if fare <= Decimal("0"):
            raise ValueError("fare must be greater than zero")
    except (InvalidOperation, ValueError, TypeError) as exc:
        yield reject("BUSINESS_RULE_VALIDATION", f"Invalid fare: {exc}")
        return

    try:
        event_time = datetime.fromisoformat(str(payload["event_time"]).replace("Z", "+00:00"))
        if event_time.tzinfo is None:
            raise ValueError("event_time must include an offset or Z")
    except (ValueError, TypeError) as exc:
        yield reject("EVENT_TIME_VALIDATION", f"Invalid event_time: {exc}")
        return

    record = {
        "booking_id": str(payload["booking_id"]),
        "passenger_id": str(payload["passenger_id"]),
        "flight_number": str(payload["flight_number"]),
        "origin_airport": str(payload["origin"]),
        "destination_airport": str(payload["destination"]),
        "fare_amount": str(fare),
        "currency": str(payload.get("currency", "USD")),
        "booking_status": str(payload.get("status", "CONFIRMED")),
        "event_timestamp": event_time.isoformat(),
        "ingestion_timestamp": received_at,
        "source_message_id": message_id,
    }
    yield event_time.timestamp(), record


def load(path):
    """(payload, message id) for each line that is not empty."""
    with open(path, "rb") as file:
        lines = (line.rstrip(b"\r\n") for line in file)
        return [(line, str(number)) for number, line in enumerate(filter(None, lines))]


def chunks(events):
    """The events in lists of at most CHUNK."""
    rest = iter(events)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def measure(events, seconds):
    """Goes round the events until the time is up, and says how many were judged and how long that took."""
    rounds = list(chunks(events))
    count = accepted = 0
    elapsed = 0.0
    started = time.perf_counter()
    while True:
        for chunk in rounds:
            for data, message_id in chunk:
                for tag, _ in validate(data, message_id):
                    if tag is not QUARANTINE:
                        accepted += 1
            count += len(chunk)
            elapsed = time.perf_counter() - started
            if elapsed >= seconds:
                return {
                    "events": count,
                    "seconds": elapsed,
                    "events_per_second": count / elapsed,
                    "accepted": accepted,
                    "rejected": count - accepted,
                }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="payloads, one a line")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to measure (default: 3)")
    arguments = parser.parse_args()
    events = load(arguments.file)
    if not events:
        sys.exit(f"error: {arguments.file} holds no payload")
    print(json.dumps(measure(events, arguments.seconds)))


if __name__ == "__main__":
    main()
