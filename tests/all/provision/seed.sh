bq --location="${REGION}" mk --dataset "${PROJECT_ID}:offvia_bronze"
bq --location="${REGION}" mk --dataset "${PROJECT_ID}:offvia_silver"
bq --location="${REGION}" mk --dataset "${PROJECT_ID}:offvia_quarantine"
gcloud pubsub topics create booking-events-topic
gcloud pubsub subscriptions create booking-events-dataflow-sub \
--topic=booking-events-topic \
--ack-deadline=60
export PROJECT_NUMBER="$(gcloud projects describe "${PROJECT_ID}" --format='value(projectNumber)')"
export PUBSUB_SERVICE_AGENT="service-${PROJECT_NUMBER}@gcp-sa-pubsub.iam.gserviceaccount.com"
bq add-iam-policy-binding \
--member="serviceAccount:${PUBSUB_SERVICE_AGENT}" \
--role="roles/bigquery.dataEditor" \
"${PROJECT_ID}:offvia_bronze"
gcloud pubsub subscriptions create booking-events-bronze-sub \
--topic=booking-events-topic \
--bigquery-table="${PROJECT_ID}.offvia_bronze.raw_bookings" \
--write-metadata
