//! Components of a rule store.

use super::*;
use preflight::digest::Digest;
use preflight_tests::{Pipeline, bookings};
use serde_json::json;

#[test]
fn components_of_a_rule_store_are_named_by_the_beginning_of_their_digest() {
    let (directory, path) = input(bookings::lines(11));
    let store = directory.path().join("rules");
    for name in ["offvia-booking", "offvia-booking-v2"] {
        let fixtures = paths::root().join("guest-validators").join(name).join("fixtures.ndjson");
        let rule = paths::rule(name);
        preflight(["rules", "stage", text(&rule), "--fixtures", text(&fixtures), "--store", text(&store)]).expect(0);
    }
    let digests = [v1(), v2()].map(|rule| Digest::of(&std::fs::read(rule).unwrap()));
    let (whole, short) = (digests[0].to_string(), &digests[1].hex()[..8]);
    let from_store = ["--store", text(&store), "--json"];
    let report = diff(Path::new(&whole), Path::new(short), &path, &from_store).expect(3).json();
    assert_eq!((&report["old"]["digest"], &report["new"]["digest"]), (&json!(digests[0]), &json!(digests[1])));
    // What is not staged yet is compared with what is.
    diff(Path::new(short), &v2(), &path, &from_store).expect(0);
    let pipeline = Pipeline::offvia("");
    let file = std::fs::read_to_string(pipeline.file()).unwrap();
    let (head, tail) = (file.split("[rules.components]").next().unwrap(), file.split("[warehouse").nth(1).unwrap());
    std::fs::write(pipeline.file(), format!("{head}store = {:?}\n[warehouse{tail}", text(&store))).unwrap();
    let file = pipeline.file();
    diff(Path::new(short), &v2(), &path, &["--pipeline", text(&file), "--events", "1"]).expect(0);
    refused(diff(Path::new("0000"), &v2(), &path, &from_store), &["no staged component", text(&store)]);
    refused(diff(Path::new("a"), &v2(), &path, &from_store), &["is not a digest"]);
    // A store that cannot be read is no wrong usage, as with `preflight rules`.
    broken(diff(Path::new(short), &v2(), &path, &[]), &["in rule store rules", "there is no rule store here"]);
    std::fs::write(store.join("components").join(format!("{}.wasm", digests[0].hex())), "cut off").unwrap();
    broken(diff(Path::new(&whole), &v2(), &path, &from_store), &[&digests[0].hex()]);
}
