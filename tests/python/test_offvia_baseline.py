"""The baseline must judge as the pipeline does that it stands for, or a comparison with it says nothing."""

import json
import unittest

from offvia_baseline import QUARANTINE, measure, validate

BOOKING = {
    "booking_id": "BK-90210",
    "passenger_id": "PAX-4821",
    "flight_number": "OF-104",
    "origin": "JFK",
    "destination": "LHR",
    "fare": "749.50",
    "event_time": "2026-10-07T14:10:00Z",
}


def judge(payload):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    (verdict,) = validate(data, "m-1")
    return verdict


class Baseline(unittest.TestCase):
    def test_a_good_booking_becomes_a_record_with_defaults(self):
        event_time, record = judge(BOOKING)
        self.assertEqual(event_time, 1791382200.0)
        self.assertEqual(record.pop("ingestion_timestamp")[-6:], "+00:00")
        self.assertEqual(
            record,
            {
                "booking_id": "BK-90210",
                "passenger_id": "PAX-4821",
                "flight_number": "OF-104",
                "origin_airport": "JFK",
                "destination_airport": "LHR",
                "fare_amount": "749.50",
                "currency": "USD",
                "booking_status": "CONFIRMED",
                "event_timestamp": "2026-10-07T14:10:00+00:00",
                "source_message_id": "m-1",
            },
        )

    def test_bad_bookings_are_rejected_at_their_stage(self):
        for stage, payload in [
            ("PARSE_JSON", b'{"booking_id":"BK-90212", "unclosed_json...'),
            ("SCHEMA_VALIDATION", {"booking_id": "BK-1"}),
            ("BUSINESS_RULE_VALIDATION", {**BOOKING, "fare": "-50.00"}),
            ("BUSINESS_RULE_VALIDATION", {**BOOKING, "fare": "free"}),
            ("EVENT_TIME_VALIDATION", {**BOOKING, "event_time": "2026-10-07T14:10:00"}),
        ]:
            with self.subTest(stage=stage, payload=payload):
                tag, row = judge(payload)
                self.assertIs(tag, QUARANTINE)
                self.assertEqual(row["error_stage"], stage)

    def test_every_event_is_counted_as_accepted_or_rejected(self):
        good, bad = json.dumps(BOOKING).encode(), b"{"
        result = measure([(good, "1"), (bad, "2"), (good, "3")], seconds=0)
        self.assertEqual((result["events"], result["accepted"], result["rejected"]), (3, 2, 1))


if __name__ == "__main__":
    unittest.main()
