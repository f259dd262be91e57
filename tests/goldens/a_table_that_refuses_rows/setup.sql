CREATE TABLE fact_bookings (
  booking_id TEXT NOT NULL UNIQUE,
  passenger_id TEXT NOT NULL,
  flight_number TEXT NOT NULL CHECK (flight_number LIKE 'OF-%'),
  origin_airport TEXT NOT NULL,
  destination_airport TEXT NOT NULL,
  fare_amount TEXT NOT NULL,
  currency TEXT NOT NULL,
  booking_status TEXT NOT NULL,
  event_timestamp TEXT NOT NULL,
  ingestion_timestamp TEXT NOT NULL,
  source_message_id TEXT NOT NULL
);
