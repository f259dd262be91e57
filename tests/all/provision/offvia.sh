# offvia-bookings on Google Cloud, as commands. Nothing was asked, and nothing was changed.

# Who is who
export PROJECT_NUMBER="$(gcloud projects describe YOUR_PROJECT_ID --format='value(projectNumber)')"
export PUBSUB_SERVICE_AGENT="service-${PROJECT_NUMBER}@gcp-sa-pubsub.iam.gserviceaccount.com"
export WORKER=serviceAccount:offvia-worker@YOUR_PROJECT_ID.iam.gserviceaccount.com
export PROVISIONER="user:$(gcloud config get-value account)"

# Roles of whoever runs this; somebody who administers the project grants them
#   it makes datasets, by which it owns them with their tables, and runs the SQL
gcloud projects add-iam-policy-binding YOUR_PROJECT_ID --condition=None \
  --member="${PROVISIONER}" --role=roles/bigquery.user
#   it makes topics and subscriptions
gcloud projects add-iam-policy-binding YOUR_PROJECT_ID --condition=None \
  --member="${PROVISIONER}" --role=roles/pubsub.editor

# Datasets
bq --project_id=YOUR_PROJECT_ID --location=us-central1 mk --dataset YOUR_PROJECT_ID:offvia_bronze
bq --project_id=YOUR_PROJECT_ID --location=us-central1 mk --dataset YOUR_PROJECT_ID:offvia_silver
bq --project_id=YOUR_PROJECT_ID --location=us-central1 mk --dataset YOUR_PROJECT_ID:offvia_quarantine

# Tables
bq --project_id=YOUR_PROJECT_ID --location=us-central1 query --use_legacy_sql=false <<'SQL'
CREATE TABLE IF NOT EXISTS `YOUR_PROJECT_ID.offvia_bronze.raw_bookings` (
  `subscription_name` STRING,
  `message_id` STRING,
  `publish_time` TIMESTAMP,
  `data` STRING,
  `attributes` JSON
)
OPTIONS (description = "Immutable raw Pub/Sub event landing table");
SQL
bq --project_id=YOUR_PROJECT_ID --location=us-central1 query --use_legacy_sql=false <<'SQL'
CREATE TABLE IF NOT EXISTS `YOUR_PROJECT_ID.offvia_silver.fact_bookings` (
  `booking_id` STRING NOT NULL,
  `passenger_id` STRING NOT NULL,
  `flight_number` STRING NOT NULL,
  `origin_airport` STRING NOT NULL,
  `destination_airport` STRING NOT NULL,
  `fare_amount` NUMERIC NOT NULL,
  `currency` STRING NOT NULL,
  `booking_status` STRING NOT NULL,
  `event_timestamp` TIMESTAMP NOT NULL,
  `ingestion_timestamp` TIMESTAMP NOT NULL,
  `source_message_id` STRING NOT NULL
)
PARTITION BY DATE(`event_timestamp`)
CLUSTER BY `origin_airport`, `destination_airport`
OPTIONS (description = "Validated real-time booking events");
SQL
bq --project_id=YOUR_PROJECT_ID --location=us-central1 query --use_legacy_sql=false <<'SQL'
CREATE TABLE IF NOT EXISTS `YOUR_PROJECT_ID.offvia_quarantine.poisoned_events` (
  `raw_payload` STRING NOT NULL,
  `error_reason` STRING NOT NULL,
  `error_stage` STRING NOT NULL,
  `received_timestamp` TIMESTAMP NOT NULL,
  `source_message_id` STRING
)
PARTITION BY DATE(`received_timestamp`)
OPTIONS (description = "Events rejected by parsing or validation");
SQL

# Topics
gcloud pubsub topics create booking-events-topic --project=YOUR_PROJECT_ID
gcloud pubsub topics create booking-events-dead-letter-topic --project=YOUR_PROJECT_ID

# Roles of Pub/Sub itself, before its subscriptions: without them none that writes bronze can be made
#   it forwards what could not be handled to the dead-letter topic
gcloud pubsub topics add-iam-policy-binding booking-events-dead-letter-topic --project=YOUR_PROJECT_ID \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/pubsub.publisher
#   it writes the messages of the bronze subscription
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/bigquery.dataEditor --table=true YOUR_PROJECT_ID:offvia_bronze.raw_bookings
#   it looks at the columns of the bronze table
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/bigquery.metadataViewer --table=true YOUR_PROJECT_ID:offvia_bronze.raw_bookings

# Subscriptions
gcloud pubsub subscriptions create booking-events-dead-letter-topic-sub \
  --project=YOUR_PROJECT_ID \
  --topic=booking-events-dead-letter-topic \
  --message-retention-duration=2678400s \
  --expiration-period=never
gcloud pubsub subscriptions create booking-events-dataflow-sub \
  --project=YOUR_PROJECT_ID \
  --topic=booking-events-topic \
  --ack-deadline=60 \
  --dead-letter-topic=booking-events-dead-letter-topic \
  --max-delivery-attempts=100 \
  --expiration-period=never
gcloud pubsub subscriptions create booking-events-bronze-sub \
  --project=YOUR_PROJECT_ID \
  --topic=booking-events-topic \
  --bigquery-table=YOUR_PROJECT_ID.offvia_bronze.raw_bookings \
  --write-metadata \
  --expiration-period=never

# Roles of Pub/Sub itself, on the subscriptions
#   it acknowledges what it has forwarded
gcloud pubsub subscriptions add-iam-policy-binding booking-events-dataflow-sub --project=YOUR_PROJECT_ID \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/pubsub.subscriber

# Roles of the worker
#   the worker reads the table's columns and appends rows
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="${WORKER}" --role=roles/bigquery.dataEditor --table=true YOUR_PROJECT_ID:offvia_silver.fact_bookings
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="${WORKER}" --role=roles/bigquery.dataEditor --table=true YOUR_PROJECT_ID:offvia_quarantine.poisoned_events
#   the worker asks a table for rows: at its start with a new ledger, and where a stream is gone
gcloud projects add-iam-policy-binding YOUR_PROJECT_ID --condition=None \
  --member="${WORKER}" --role=roles/bigquery.jobUser
#   the worker pulls, extends and acknowledges messages
gcloud pubsub subscriptions add-iam-policy-binding booking-events-dataflow-sub --project=YOUR_PROJECT_ID \
  --member="${WORKER}" --role=roles/pubsub.subscriber
#   the worker looks at its subscription before it starts
gcloud pubsub subscriptions add-iam-policy-binding booking-events-dataflow-sub --project=YOUR_PROJECT_ID \
  --member="${WORKER}" --role=roles/pubsub.viewer
# Or, in the place of roles/bigquery.dataEditor, no more than it uses: make this role once, and grant
# --role=projects/PROJECT/roles/preflightWriter on the same tables.
# gcloud iam roles create preflightWriter --project=YOUR_PROJECT_ID --stage=GA --title="Preflight writer" --permissions=bigquery.tables.get,bigquery.tables.getData,bigquery.tables.updateData
