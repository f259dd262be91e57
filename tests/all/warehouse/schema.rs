//! Tables that change while rows are written to them, on the strict fake.

use super::fakes::{fake, text};
use super::place::{Place, Target, layout};
use preflight::warehouse::Appended;

#[tokio::test]
async fn a_dropped_column_is_waited_for_and_told_of() {
    let place = Place::fake();
    let target = Target::new(&place).await;
    let mut changes = target.warehouse.schema_changes();
    target.append(0, &["a"]).await.unwrap();
    assert!(!changes.has_changed().unwrap());
    fake(&place).drop_column(&target.table, "number", true);
    let error = text(target.append(1, &["b"]).await);
    assert!(error.contains(&target.layout.table) && error.contains("lacks a column"), "{error}");
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    fake(&place).add_column(&target.table, "number INT64", true);
    assert_eq!(target.append(1, &["b"]).await, Ok(Appended::Written));
    fake(&place).content(|content| content.expect_each_once(&target.table, "id", ["a", "b"]));
}

#[tokio::test]
async fn an_added_column_is_told_of_once_and_written_when_it_is_known() {
    let place = Place::fake();
    let mut target = Target::new(&place).await;
    let mut changes = target.warehouse.schema_changes();
    target.append(0, &["a"]).await.unwrap();
    fake(&place).add_column(&target.table, "extra STRING", true);
    for (offset, id) in [(1, "b"), (2, "c")] {
        target.append(offset, &[id]).await.unwrap();
        assert_eq!(changes.has_changed().unwrap(), offset == 1);
        changes.mark_unchanged();
    }
    target.layout = layout(&place, target.warehouse.as_ref(), &target.table).await;
    assert_eq!(target.append(3, &["d"]).await, Ok(Appended::Written));
    // REST knows of another at once, the Storage Write interface only after minutes.
    fake(&place).add_column(&target.table, "more STRING", false);
    target.layout = layout(&place, target.warehouse.as_ref(), &target.table).await;
    assert!(text(target.append(4, &["e"]).await).contains("some minutes"));
    fake(&place).catch_up(&target.table);
    assert_eq!(target.append(4, &["e"]).await, Ok(Appended::Written));
    assert_eq!(place.values(&target.table, "extra", "id"), ["null", "null", "null", "more", "more"]);
    assert_eq!(place.values(&target.table, "more", "id"), ["null", "null", "null", "null", "more"]);
}
