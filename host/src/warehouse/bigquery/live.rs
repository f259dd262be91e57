//! A table as the REST interface describes it: what we look at, and no more. A column of a type that is newer than this
//! version is told by the name of the type; what we do not look at may be anything.

use serde::Deserialize;
use serde_json::Value;

/// A table that is there.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LiveTable {
    /// What it is: `TABLE`, `VIEW`, `EXTERNAL`, ….
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) description: Option<String>,
    schema: Option<Schema>,
    pub(super) time_partitioning: Option<TimePartitioning>,
    pub(super) range_partitioning: Option<RangePartitioning>,
    pub(super) require_partition_filter: Option<bool>,
    clustering: Option<Clustering>,
    table_constraints: Option<Constraints>,
    view: Option<View>,
}

#[derive(Debug, Clone, Deserialize)]
struct Schema {
    #[serde(default)]
    fields: Vec<Field>,
}

/// A column.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Field {
    pub(super) name: String,
    /// `STRING`, `INTEGER`, … or one that we do not know.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// `REQUIRED`, `REPEATED`; everything else is nullable.
    pub(super) mode: Option<String>,
    max_length: Option<Value>,
    precision: Option<Value>,
    scale: Option<Value>,
    pub(super) default_value_expression: Option<String>,
}

impl Field {
    /// The longest text or bytes; 0 is any.
    pub(super) fn max_length(&self) -> i64 {
        number(self.max_length.as_ref())
    }

    /// Digits of a number, in all and behind the point; 0 is what the type has.
    pub(super) fn digits(&self) -> (i64, i64) {
        (number(self.precision.as_ref()), number(self.scale.as_ref()))
    }
}

/// REST has large numbers as text. What is no number is none.
fn number(value: Option<&Value>) -> i64 {
    let read = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
    value.and_then(read).unwrap_or_default()
}

/// Partitions by a time.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TimePartitioning {
    /// `DAY`, `HOUR`, ….
    #[serde(rename = "type")]
    pub(super) unit: String,
    /// None where it is the time of arrival.
    pub(super) field: Option<String>,
    pub(super) require_partition_filter: Option<bool>,
}

/// Partitions by a number.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RangePartitioning {
    pub(super) field: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Clustering {
    fields: Option<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
struct View {
    query: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Constraints {
    primary_key: Option<PrimaryKey>,
}

#[derive(Debug, Clone, Deserialize)]
struct PrimaryKey {
    #[serde(default)]
    columns: Vec<String>,
}

impl LiveTable {
    /// The columns, in their order.
    pub(super) fn fields(&self) -> &[Field] {
        self.schema.as_ref().map_or(&[], |schema| &schema.fields)
    }

    /// A column by its name, of which case does not count.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields().iter().find(|field| field.name.eq_ignore_ascii_case(name))
    }

    /// Whether a column alone is the primary key.
    pub(super) fn is_key(&self, name: &str) -> bool {
        let key = self.table_constraints.as_ref().and_then(|constraints| constraints.primary_key.as_ref());
        key.is_some_and(|key| matches!(key.columns.as_slice(), [column] if column.eq_ignore_ascii_case(name)))
    }

    /// The query of a view, where it is told.
    pub(super) fn view_query(&self) -> Option<&str> {
        self.view.as_ref()?.query.as_deref()
    }

    /// The columns that its rows are sorted by.
    pub(super) fn cluster_by(&self) -> Vec<String> {
        self.clustering.as_ref().and_then(|clustering| clustering.fields.clone()).unwrap_or_default()
    }
}
