use crate::lookup::Table;
use crate::prelude::*;

row!(
    struct Seat {
        number: Text,
        booked_at: EventTime,
    }
);

row!(
    struct Airport {
        city: Text,
        elevation: Option<i64>,
    }
);

const AIRPORTS: Table<Text, Airport> = Table::new("airports");

mod plain {
    use super::Seat;
    use crate::prelude::*;

    validator!(validate, event_versions: ["1"]);

    pub(super) fn validate(_event: &Event) -> Verdict<Seat> {
        ignore("a test")
    }
}

mod full {
    use super::{AIRPORTS, Seat};
    use crate::prelude::*;

    validator!(validate, event_versions: ["1", "2"], attributes: ["source"], tables: [AIRPORTS], name: "seats", version: "9.9.9");

    fn validate(_event: &Event, tables: &dyn Lookup) -> Verdict<Seat> {
        let airport = AIRPORTS.get(tables, "JFK".to_owned())?;
        ignore(airport.map(|airport| airport.city).unwrap_or_default())
    }

    #[test]
    fn a_rule_looks_things_up_in_a_fake_table() {
        let tables: &[_] =
            &[("airports", Value::Text("JFK".to_owned()), vec![Value::Text("New York".to_owned()), Value::Null])];
        assert_eq!(validate(&Event::new(""), &tables), ignore("New York"));
        let tables: &[_] = &[];
        assert_eq!(validate(&Event::new(""), &tables), ignore(""));
    }
}

#[test]
fn a_manifest_takes_name_and_version_from_the_package() {
    assert_eq!(plain::validate(&Event::new("")), ignore("a test"));
    let manifest = plain::manifest();
    assert_eq!((manifest.name, manifest.version), ("preflight-sdk", env!("CARGO_PKG_VERSION")));
    assert_eq!(manifest.event_versions, ["1"]);
    assert_eq!(manifest.columns, Seat::COLUMNS);
    assert_eq!(manifest.event_time, Some("booked_at"));
    assert!(manifest.attributes.is_empty() && manifest.tables.is_empty() && manifest.inputs.is_empty());
}

#[test]
fn a_manifest_says_all_that_the_macro_was_told() {
    let manifest = full::manifest();
    assert_eq!((manifest.name, manifest.version), ("seats", "9.9.9"));
    assert_eq!(manifest.event_versions, ["1", "2"]);
    assert_eq!(manifest.attributes, ["source"]);
    assert_eq!(manifest.tables, [AIRPORTS.describe()]);
    assert_eq!(manifest.tables[0].columns, Airport::COLUMNS);
}
