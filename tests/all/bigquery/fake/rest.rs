//! The part of the REST interface.

use super::writer::row;
use super::{TABLE, fake, stream};
use preflight_tests::bigquery::Fake;
use preflight_tests::bigquery::fake::{Call, Fault, PROJECT};
use preflight_tests::http::{self, Answer};
use serde_json::json;
use tonic::Code;

fn table(fake: &Fake, name: &str) -> Answer {
    let (dataset, table) = name.split_once('.').unwrap();
    http::get(&fake.rest().to_string(), &format!("/bigquery/v2/projects/{PROJECT}/datasets/{dataset}/tables/{table}"))
}

fn query(fake: &Fake, sql: &str, wanted: &[&str]) -> Answer {
    let values: Vec<_> = wanted.iter().map(|value| json!({ "value": value })).collect();
    let parameter = json!({ "name": "wanted", "parameterValue": { "arrayValues": values } });
    let body = json!({ "query": sql, "queryParameters": [parameter] });
    http::post(&fake.rest().to_string(), &format!("/bigquery/v2/projects/{PROJECT}/queries"), &body)
}

fn values(answer: &Answer) -> Vec<String> {
    let answer = answer.json();
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().map(|row| row["f"][0]["v"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_table_is_described_with_types_modes_and_partitions() {
    let fake = fake();
    let described = table(&fake, TABLE).json();
    let field = |index: usize| described["schema"]["fields"][index].clone();
    assert_eq!(field(0), json!({ "name": "id", "type": "STRING", "mode": "REQUIRED" }));
    assert_eq!(field(5), json!({ "name": "x", "type": "FLOAT", "mode": "NULLABLE" }));
    assert_eq!(field(9)["maxLength"], "3");
    assert_eq!(described["timePartitioning"]["field"], "seen");
    let missing = table(&fake, "d.none");
    assert_eq!((missing.status, &missing.json()["error"]["errors"][0]["reason"]), (404, &"notFound".into()));
    fake.when(Call::Table).once(Fault::answer(Code::Unavailable));
    assert_eq!(table(&fake, TABLE).status, 503);
    fake.when(Call::Table).once(Fault::Page(502));
    assert_eq!(table(&fake, TABLE).status, 502);
    assert_eq!(table(&fake, TABLE).status, 200);
}

#[test]
fn the_statements_of_a_worker_are_answered_and_others_refused() {
    let fake = fake();
    let any = format!("SELECT 1 FROM `{PROJECT}.d.t` WHERE TRUE LIMIT 1");
    assert_eq!(values(&query(&fake, &any, &[])), [] as [&str; 0]);
    let (writer, stream) = stream(&fake);
    assert!(writer.open(&stream).append(0, &[row("a"), row("b"), row("b")]).is_written_at(0));
    assert_eq!(values(&query(&fake, &any, &[])), ["1"]);
    let present = format!("SELECT DISTINCT `id` FROM `{PROJECT}.d.t` WHERE `id` IN UNNEST(@wanted) AND TRUE");
    assert_eq!(values(&query(&fake, &present, &["b", "c"])), ["b"]);
    assert_eq!(query(&fake, "DELETE FROM `d.t` WHERE TRUE", &[]).status, 400);
    assert_eq!(query(&fake, "SELECT 1 FROM `d.none` LIMIT 1", &[]).status, 404);
}

#[test]
fn a_table_is_made_by_a_statement_and_asks_for_its_partitions() {
    let fake = Fake::start();
    let sql = "CREATE TABLE IF NOT EXISTS `e.t` (id STRING, seen DATE) PARTITION BY seen OPTIONS (require_partition_filter = true)";
    assert_eq!(query(&fake, sql, &[]).status, 200);
    assert_eq!(query(&fake, sql, &[]).status, 200);
    assert_eq!(query(&fake, "CREATE TABLE `e.t` (id STRING)", &[]).status, 409);
    assert_eq!(table(&fake, "e.t").json()["requirePartitionFilter"], true);
    assert_eq!(query(&fake, "SELECT 1 FROM `e.t` WHERE TRUE LIMIT 1", &[]).status, 400);
    assert_eq!(query(&fake, "SELECT 1 FROM `e.t` WHERE (`seen` IS NULL OR TRUE) LIMIT 1", &[]).status, 200);
}
