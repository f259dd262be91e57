CREATE TABLE raw_bookings (
  id INTEGER PRIMARY KEY NOT NULL,
  DATA TEXT NOT NULL,
  shard INTEGER NOT NULL DEFAULT 7
);
CREATE TABLE fact_bookings (
  loaded_at TEXT NOT NULL,
  fare_amount VARCHAR(40) NOT NULL,
  booking_id VARCHAR(20) NOT NULL,
  passenger_id TEXT, flight_number TEXT, origin_airport TEXT, destination_airport TEXT,
  currency CHAR(3), booking_status TEXT,
  event_timestamp TEXT NOT NULL,
  reviewed TEXT DEFAULT 'no',
  fare_digits INTEGER GENERATED ALWAYS AS (length(fare_amount)) STORED
);
CREATE TABLE poisoned_events (
  raw_payload TEXT NOT NULL,
  error_reason TEXT NOT NULL,
  error_stage TEXT NOT NULL,
  received_timestamp TEXT NOT NULL,
  source_message_id TEXT,
  seen_by TEXT NOT NULL DEFAULT 'nobody'
);
