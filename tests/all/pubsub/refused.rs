//! Subscriptions that are not there, or cannot be pulled: told before the first event, with what to do.

use super::wait_for_rows;
use google_cloud_pubsub::model::PushConfig;
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Booking, Pipeline, Proxy, Running, pipeline as commands, tables};
use serde_json::Value;

/// Asserts that neither `check` nor `run` takes it, and that both say this.
#[track_caller]
fn expect_refused(pipeline: &Pipeline, what: &[&str]) {
    for ended in [pipeline.check(), pipeline.run()] {
        let said = ended.expect(2).stderr;
        assert!(said.contains("source.pubsub.subscription"), "{said}");
        for part in what {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    }
    assert!(!pipeline.ledger().exists(), "nothing was begun");
}

#[test]
fn a_subscription_that_does_not_exist_is_refused_with_the_way_to_make_it() {
    let feed = Feed::new();
    feed.delete_subscription();
    let name = feed.subscription();
    let create = format!("gcloud pubsub subscriptions create {}", name.rsplit('/').next().unwrap());
    expect_refused(&feed.pipeline(), &[name, "does not exist", "preflight provision", &create]);
}

#[test]
fn a_subscription_that_pushes_is_refused() {
    let push = PushConfig::new().set_push_endpoint("http://127.0.0.1:9/push");
    let feed = Feed::with(|subscription| subscription.set_push_config(push));
    expect_refused(&feed.pipeline(), &[feed.subscription(), "pushes to http://127.0.0.1:9/push"]);
}

#[test]
fn check_says_what_the_subscription_is_and_what_to_know_of_it() {
    let feed = Feed::with(|subscription| {
        subscription.set_enable_exactly_once_delivery(true).set_enable_message_ordering(true)
    });
    let pipeline = feed.pipeline();
    let said = pipeline.check().expect(0).stdout;
    for part in [
        feed.subscription(),
        feed.topic(),
        "ack deadline 10 s",
        "exactly-once",
        "ordered by key (so one stream is pulled)",
        "60 s is advised",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let output = pipeline.command("check").arg("--json").output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["subscription"]["exactly_once"], &json["subscription"]["ack_deadline_seconds"]),
        (&true.into(), &10.into())
    );
}

#[test]
fn check_says_that_pubsub_is_out_of_reach_and_a_run_waits_for_it() {
    let feed = Feed::new();
    let ids = feed.publish([message(Booking::v1("BK-1").json())]);
    let network = Proxy::to(&preflight_tests::pubsub::Emulator::shared().address);
    network.cut();
    let pipeline = feed.pipeline_at(network.address());
    let said = pipeline.check().expect(2).stderr;
    assert!(said.contains("source.pubsub.subscription") && said.contains("cannot be reached"), "{said}");
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_for_log("trying again");
    network.open();
    wait_for_rows(&mut run, &pipeline, 1);
    run.stop().expect(0);
    super::expect_each_once(&pipeline, &ids);
}

#[test]
fn a_subscription_that_is_deleted_ends_the_run_when_what_was_taken_is_finished() {
    let feed = Feed::new();
    let ids = feed.publish([message(Booking::v1("BK-1").json())]);
    // The micro-batch is open when the subscription goes.
    let pipeline = feed.pipeline().set("batch.max_age=10 m").set("admin.listen=127.0.0.1:0");
    let (mut run, _stdin) = Running::start(&pipeline);
    let admin = run.admin();
    run.wait_patiently_until(|| super::figure(&admin, "preflight_outstanding_messages") == 1);
    feed.delete_subscription();
    let said = run.finish().expect(1).stderr;
    assert!(said.contains(feed.subscription()) && said.contains("does not exist"), "{said}");
    assert_eq!(tables::column(&pipeline.database(), "fact_bookings", "source_message_id"), ids);
}

#[test]
fn two_pipelines_of_a_run_may_not_share_a_subscription() {
    let feed = Feed::new();
    let (one, two) = (feed.pipeline(), feed.pipeline());
    let text = std::fs::read_to_string(two.file()).unwrap();
    std::fs::write(two.file(), text.replace("name = \"test\"", "name = \"other\"")).unwrap();
    let said = commands::preflight([std::ffi::OsStr::new("run"), one.file().as_os_str(), two.file().as_os_str()])
        .expect(2)
        .stderr;
    assert!(said.contains("source.pubsub.subscription") && said.contains(feed.subscription()), "{said}");
}
