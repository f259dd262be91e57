use crate::prelude::*;
use crate::row::Row;
use crate::value::Column;

row!(
    struct Everything {
        flag: bool,
        count: i64,
        ratio: Option<f64>,
        amount: Numeric,
        name: Text,
        /// A keyword as a column name.
        r#type: Option<Text>,
        raw: Bytes,
        seen: Option<Timestamp>,
        happened: EventTime,
        day: Date,
        extra: Option<Json>,
    }
);

fn everything() -> Everything {
    Everything {
        flag: true,
        count: -1,
        ratio: Some(0.5),
        amount: Numeric::new(7495, 1),
        name: "x".to_owned(),
        r#type: None,
        raw: vec![0xE9],
        seen: None,
        happened: Timestamp::from_micros(5).unwrap().into(),
        day: Date::from_days(1).unwrap(),
        extra: Some(Json("[1]".to_owned())),
    }
}

#[test]
fn columns_come_from_the_fields() {
    let names: Vec<_> = Everything::COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names, ["flag", "count", "ratio", "amount", "name", "type", "raw", "seen", "happened", "day", "extra"]);
    assert_eq!(Everything::COLUMNS[5], Column { name: "type", kind: ColumnType::Text, nullable: true });
    assert_eq!(Everything::COLUMNS[8], Column { name: "happened", kind: ColumnType::Timestamp, nullable: false });
    assert_eq!(Everything::EVENT_TIME, Some("happened"));
}

#[test]
fn values_are_in_the_order_of_the_columns_and_back() {
    let values = everything().into_values().unwrap();
    assert_eq!(
        values,
        [
            Value::Boolean(true),
            Value::Int64(-1),
            Value::Float64(0.5),
            Value::Numeric("749.5".to_owned()),
            Value::Text("x".to_owned()),
            Value::Null,
            Value::Bytes(vec![0xE9]),
            Value::Null,
            Value::Timestamp(5),
            Value::Date(1),
            Value::Json("[1]".to_owned()),
        ]
    );
    assert_eq!(Everything::from_values(values), Some(everything()));
}

#[test]
fn values_that_do_not_fit_the_columns_make_no_row() {
    let fitting = everything().into_values().unwrap();
    let mut short = fitting.clone();
    short.pop();
    let mut long = fitting.clone();
    long.push(Value::Null);
    let mut null = fitting.clone();
    null[0] = Value::Null;
    let mut other_type = fitting;
    other_type[1] = Value::Text("1".to_owned());
    for values in [short, long, null, other_type] {
        assert_eq!(Everything::from_values(values), None);
    }
}

#[test]
fn a_computed_value_that_its_column_cannot_hold_is_named() {
    let third = Everything { amount: Numeric::ONE / Numeric::from(3), ..everything() };
    assert_eq!(
        third.into_values().unwrap_err().to_string(),
        "amount must have at most 9 digits after the decimal point"
    );
    let nan = Everything { ratio: Some(f64::NAN), ..everything() };
    assert_eq!(nan.into_values().unwrap_err().to_string(), "ratio must be a finite number");
}
