# offvia-bookings on Google Cloud, as commands. Nothing was asked, and nothing was changed.
# Who administers the projects runs all of it. Else two take turns: roles are granted by whoever may call
# setIamPolicy, everything else is made by the provisioner, who need not.

# Who is who, for both; who runs this for another provisioner writes that one's name here
export PROJECT_NUMBER="$(gcloud projects describe YOUR_PROJECT_ID --format='value(projectNumber)')"
export PUBSUB_SERVICE_AGENT="service-${PROJECT_NUMBER}@gcp-sa-pubsub.iam.gserviceaccount.com"
export WORKER=serviceAccount:offvia-worker@YOUR_PROJECT_ID.iam.gserviceaccount.com
export PROVISIONER="user:$(gcloud config get-value account)"

# 1. An administrator: roles of the provisioner
#   it makes datasets, by which it owns them with their tables, and runs the SQL
gcloud projects add-iam-policy-binding YOUR_PROJECT_ID --condition=None \
  --member="${PROVISIONER}" --role=roles/bigquery.user
#   it makes topics and subscriptions
gcloud projects add-iam-policy-binding YOUR_PROJECT_ID --condition=None \
  --member="${PROVISIONER}" --role=roles/pubsub.editor

# 2. The provisioner: datasets
bq --project_id=YOUR_PROJECT_ID --location=us-central1 mk --dataset YOUR_PROJECT_ID:offvia_bronze
bq --project_id=YOUR_PROJECT_ID --location=us-central1 mk --dataset YOUR_PROJECT_ID:offvia_silver
bq --project_id=YOUR_PROJECT_ID --location=us-central1 mk --dataset YOUR_PROJECT_ID:offvia_quarantine

# 2. The provisioner: tables
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

# 2. The provisioner: topics
gcloud pubsub topics create booking-events-topic --project=YOUR_PROJECT_ID
gcloud pubsub topics create booking-events-dead-letter-topic --project=YOUR_PROJECT_ID

# 2. The provisioner: subscriptions
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

# 3. An administrator: roles of Pub/Sub itself
#   it forwards what could not be handled to the dead-letter topic
gcloud pubsub topics add-iam-policy-binding booking-events-dead-letter-topic --project=YOUR_PROJECT_ID \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/pubsub.publisher
#   it acknowledges what it has forwarded
gcloud pubsub subscriptions add-iam-policy-binding booking-events-dataflow-sub --project=YOUR_PROJECT_ID \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/pubsub.subscriber
#   it writes the messages of the bronze subscription
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/bigquery.dataEditor --table=true YOUR_PROJECT_ID:offvia_bronze.raw_bookings
#   it looks at the columns of the bronze table
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="serviceAccount:${PUBSUB_SERVICE_AGENT}" --role=roles/bigquery.metadataViewer --table=true YOUR_PROJECT_ID:offvia_bronze.raw_bookings

# 3. An administrator: roles of the worker
#   the worker reads the table's columns and appends rows
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="${WORKER}" --role=roles/bigquery.dataEditor --table=true YOUR_PROJECT_ID:offvia_silver.fact_bookings
bq --project_id=YOUR_PROJECT_ID add-iam-policy-binding \
  --member="${WORKER}" --role=roles/bigquery.dataEditor --table=true YOUR_PROJECT_ID:offvia_quarantine.poisoned_events
#   the worker runs queries: at a start with a new ledger, where a stream is gone, and for quarantine and its replay
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

# 4. The provisioner: subscriptions that write to BigQuery; until Pub/Sub may write, none can be made
gcloud pubsub subscriptions create booking-events-bronze-sub \
  --project=YOUR_PROJECT_ID \
  --topic=booking-events-topic \
  --bigquery-table=YOUR_PROJECT_ID.offvia_bronze.raw_bookings \
  --write-metadata \
  --expiration-period=never

# An identity that only looks for drift (`preflight provision` as a job) needs no more than this
# gcloud projects add-iam-policy-binding YOUR_PROJECT_ID --condition=None --member=WHO --role=roles/bigquery.metadataViewer
# gcloud projects add-iam-policy-binding YOUR_PROJECT_ID --condition=None --member=WHO --role=roles/pubsub.viewer
