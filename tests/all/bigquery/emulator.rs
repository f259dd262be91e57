//! The emulator runs, and ends with whoever started it.

use preflight_tests::bigquery::Emulator;

#[test]
fn the_emulator_answers_queries() {
    let emulator = Emulator::shared();
    let (one, two) = (emulator.dataset("d"), emulator.dataset("d"));
    assert_ne!(one, two);
    let table = format!("`{one}.t`");
    emulator
        .query(&format!("CREATE TABLE {table} (id STRING NOT NULL, n INT64, seen TIMESTAMP) PARTITION BY DATE(seen)"));
    emulator.query(&format!("INSERT INTO {table} (id, n) VALUES ('a', 15), ('b', NULL)"));
    let rows = emulator.query(&format!("SELECT id, n FROM {table} ORDER BY id"));
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["id"], &rows[0]["n"]), (&"a".into(), &"15".into()));
    assert!(rows[1]["n"].is_null());
    assert_eq!(emulator.value(&format!("SELECT COUNT(*) FROM {table}")), "2");
}

#[test]
fn an_emulator_that_is_dropped_takes_no_more_connections() {
    let emulator = Emulator::start();
    let (rest, storage) = (emulator.rest().to_owned(), emulator.storage().to_owned());
    assert!(std::net::TcpStream::connect(&rest).is_ok() && std::net::TcpStream::connect(&storage).is_ok());
    drop(emulator);
    assert!(std::net::TcpStream::connect(&rest).is_err() && std::net::TcpStream::connect(&storage).is_err());
}
