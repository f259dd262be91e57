//! Runs that replace tables, files of rejects, and how many rejects there may be.

use super::{load, load_google};
use crate::config::{Config, MaxRejects, RejectFilesConfig, Write};
use std::path::Path;

const REPLACE: &str = "silver.write=replace";

fn refused(result: Result<Config, String>, key: &str, what: &str) {
    let error = result.unwrap_err();
    assert!(error.contains(&format!("{key}: ")) && error.contains(what), "{error}");
}

#[test]
fn tables_are_appended_to_unless_it_is_said() {
    let config = load(&[]).unwrap();
    assert!(!config.replaces() && config.tiers().all(|tier| tier.write == Write::Append));
    let config = load(&[REPLACE, "quarantine.write=replace"]).unwrap();
    assert!(config.replaces());
    let writes: Vec<Write> = config.tiers().map(|tier| tier.write).collect();
    assert_eq!(writes, [Write::Append, Write::Replace, Write::Replace]);
    assert!(load(&[REPLACE, "source.stdin={}"]).unwrap().replaces());
}

#[test]
fn what_has_no_end_or_no_silver_replaces_nothing() {
    refused(load_google(&[REPLACE]), "silver.write", "a subscription has none");
    refused(load_google(&["quarantine.write=replace"]), "quarantine.write", "a subscription has none");
    for tier in ["bronze", "quarantine"] {
        refused(
            load(&[&format!("{tier}.write=replace")]),
            &format!("{tier}.write"),
            "needs silver.write = \"replace\"",
        );
    }
    let aggregate = "aggregates.a={ table = \"gold\", window = { fixed = \"1 m\" }, measures = { n = \"count\" } }";
    let late = "late_data.table=late";
    refused(load(&[REPLACE, aggregate, late]), "silver.write", "with a view");
    refused(load(&[aggregate, late, "late_data.write=replace"]), "late_data.write", "always appended");
    assert!(load(&[aggregate, late, "late_data.write=append"]).is_ok());
}

#[test]
fn rejects_go_to_a_table_to_files_or_to_both() {
    let files = "quarantine={ files = { path = \"rejected/orders\" } }";
    let config = load(&[REPLACE, files]).unwrap();
    assert!(config.quarantine.table.is_some(), "--set adds to what is there");
    let expected = RejectFilesConfig { path: "rejected/orders".into(), header: false, suffix: ".csv".into() };
    assert_eq!(config.quarantine.files, Some(expected));
    let config = load(&[REPLACE, "quarantine.files.path=r/o", "quarantine.files.suffix=.txt"]).unwrap();
    assert_eq!(config.quarantine.files.unwrap().suffix, ".txt");
    refused(load(&[files]), "quarantine.files", "silver.write = \"replace\"");
    for path in ["", "rejected/", "..", "/"] {
        refused(load(&[REPLACE, &format!("quarantine.files.path={path}")]), "quarantine.files.path", "");
    }
    let with = |more: &str| load(&[REPLACE, "quarantine.files.path=r/o", more]);
    refused(with("quarantine.files.suffix=a/b"), "quarantine.files.suffix", "no end of a file name");
    refused(with("quarantine.files.header=true"), "quarantine.files.header", "name the columns");
    let csv = ["source.file.format=csv", "source.file.csv.columns=[\"a\", \"b\"]", "quarantine.files.header=true"];
    let all = [&[REPLACE, "quarantine.files.path=r/o"], &csv[..]].concat();
    assert!(load(&all).unwrap().quarantine.files.unwrap().header);
    refused(load(&[&all[..3], &all[4..]].concat()), "quarantine.files.header", "name the columns");
}

#[test]
fn rejects_must_go_somewhere_and_what_is_said_of_a_table_needs_one() {
    let file = |quarantine: &str| {
        let text = format!(
            "name = 'p'\nsource.file.path = 'in'\nrules.components = {{ '1' = 'one.wasm' }}\nwarehouse.sqlite.path = 'p.db'\n\
             silver = {{ table = 'silver', write = 'replace' }}\n[quarantine]\n{quarantine}"
        );
        let mut layers = crate::config::Layers::default();
        layers.lay_file(&text, "p.toml", Path::new("base")).unwrap();
        Config::from_layers(&layers).map_err(|error| error.to_string())
    };
    refused(file(""), "quarantine", "table, files, or both");
    let config = file("files.path = 'rejected/orders'").unwrap();
    assert_eq!(config.quarantine.table, None);
    assert_eq!(config.quarantine.files.unwrap().path, Path::new("base/rejected/orders"));
    for key in
        ["create = 'never'", "write = 'replace'", "partition_by = 'a'", "cluster_by = ['a']", "description = 'a'"]
    {
        let name = key.split(' ').next().unwrap();
        refused(
            file(&format!("files.path = 'r'\n{key}")),
            &format!("quarantine.{name}"),
            "quarantine.table is missing",
        );
    }
}

#[test]
fn a_bound_for_rejects_is_a_number_or_a_percentage() {
    let bound = |text: &str| load(&[&format!("run.max_rejects={text}")]).map(|config| config.max_rejects);
    assert_eq!(load(&[]).unwrap().max_rejects, None);
    assert_eq!(bound("7"), Ok(Some(MaxRejects::Events(7))));
    assert_eq!(bound("0.5%"), Ok(Some(MaxRejects::Share(5_000))));
    for wrong in ["many", "-1", "1.5", "101%"] {
        let error = bound(wrong).unwrap_err();
        assert!(error.contains("run.max_rejects: "), "{error}");
    }
    refused(load_google(&["run.max_rejects=1%"]), "run.max_rejects", "a subscription has none");
    assert!(load_google(&["run.max_rejects=1"]).is_ok());
}
