//! The scenes of `cargo xtask demo cloud`, on the emulators that all tests share.

use preflight_tests::scenes::cloud::{Cloud, Settings};
use preflight_tests::{bigquery, pubsub};

#[test]
fn offvia_runs_on_emulators_as_its_walk_through_says() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        directory: directory.path().to_owned(),
        bigquery: bigquery::Emulator::shared(),
        pubsub: pubsub::Emulator::shared(),
        bookings: 2_000,
        tell: |_| {},
    };
    let mut cloud = Cloud::begin(settings).unwrap();
    cloud.provision().unwrap();
    cloud.three_events().unwrap();
    cloud.killed_worker().unwrap();
    cloud.end().unwrap();
}
