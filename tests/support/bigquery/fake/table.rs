//! Tables of the fake, as `CREATE TABLE` defines them.

use super::api::table_field_schema::{Mode, Type};
use super::api::{TableFieldSchema, TableSchema};
use serde_json::{Value, json};

/// A table.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// The columns as REST and SQL have them.
    pub(super) columns: Vec<Column>,
    /// The columns as the Storage Write interface knows them. It may be behind.
    pub(super) known: Vec<Column>,
    /// Counts the changes of `known`.
    pub(super) version: u64,
    /// The columns of the primary key, if it has one.
    pub(super) primary_key: Vec<String>,
    /// The column whose days are the partitions.
    pub(super) partition_by: Option<String>,
    /// Whether queries must name partitions.
    pub(super) require_partition_filter: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Type,
    pub(super) mode: Mode,
    pub(super) default: Option<String>,
    /// Of STRING and BYTES; 0 is any.
    pub(super) max_length: i64,
    /// Of NUMERIC: digits in all and behind the point; 0 is all that NUMERIC has.
    pub(super) digits: (i64, i64),
}

/// What a statement makes: the name as it is written, whether it may be there, and the table.
pub(super) struct Created {
    pub(super) name: String,
    pub(super) if_not_exists: bool,
    pub(super) table: Table,
}

impl Created {
    /// Reads `CREATE TABLE [IF NOT EXISTS] name (columns [, PRIMARY KEY (columns) NOT ENFORCED])
    /// [PARTITION BY DATE(column) | column] [CLUSTER BY …] [OPTIONS (…)]`.
    pub(super) fn parse(sql: &str) -> Result<Self, String> {
        let wrong = || format!("the fake cannot read {sql:?}");
        let rest = sql.trim().strip_prefix("CREATE TABLE ").ok_or_else(wrong)?;
        let without = rest.strip_prefix("IF NOT EXISTS ");
        let (if_not_exists, rest) = (without.is_some(), without.unwrap_or(rest));
        let (name, rest) = rest.split_once('(').ok_or_else(wrong)?;
        let end = closing(rest).ok_or_else(wrong)?;
        let (keys, columns): (Vec<&str>, Vec<&str>) =
            split(&rest[..end]).into_iter().partition(|part| part.starts_with("PRIMARY KEY"));
        let columns = columns.into_iter().map(Column::parse).collect::<Result<Vec<_>, _>>()?;
        let primary_key = keys.first().map_or(Ok(Vec::new()), |key| primary_key(key, &columns))?;
        let rest = rest[end + 1..].trim();
        let partition_by = rest.strip_prefix("PARTITION BY ").map(|rest| {
            let by = rest.strip_prefix("DATE(").unwrap_or(rest);
            let by = by.split(|c: char| c == ')' || c.is_whitespace()).next().unwrap_or_default();
            by.trim_matches('`').to_owned()
        });
        let known = columns.clone();
        let require_partition_filter = rest.replace(' ', "").contains("require_partition_filter=true");
        let table = Table { columns, known, version: 0, primary_key, partition_by, require_partition_filter };
        Ok(Self { name: name.trim().trim_matches('`').to_owned(), if_not_exists, table })
    }
}

/// Reads `PRIMARY KEY (columns) NOT ENFORCED`.
fn primary_key(text: &str, columns: &[Column]) -> Result<Vec<String>, String> {
    let wrong = || format!("the fake does not know the key {text:?}");
    let names = text.strip_prefix("PRIMARY KEY (").and_then(|rest| rest.strip_suffix(") NOT ENFORCED"));
    let names = names.ok_or_else(wrong)?.split(',').map(|name| name.trim().trim_matches('`').to_owned());
    let names: Vec<String> = names.collect();
    let known = |name: &String| columns.iter().any(|column| column.name == *name);
    if names.iter().all(known) { Ok(names) } else { Err(wrong()) }
}

/// Where the parenthesis ends that is open at the start.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth == 0).then_some(at)
    })
}

/// Splits at the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            parts.push(text[start..at].trim());
            start = at + 1;
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

impl Column {
    /// Reads `name TYPE [NOT NULL] [DEFAULT expression] [OPTIONS (…)]`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.split(" OPTIONS").next().unwrap_or_default().trim();
        let (text, default) = match text.split_once(" DEFAULT ") {
            Some((text, default)) => (text, Some(default.trim().to_owned())),
            None => (text, None),
        };
        let wrong = || format!("the fake does not know the column {text:?}");
        let (text, required) = text.trim().strip_suffix(" NOT NULL").map_or((text, false), |text| (text, true));
        let (name, kind) = text.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
        let element = kind.trim().strip_prefix("ARRAY<").and_then(|rest| rest.strip_suffix('>'));
        let mode = match (element, required) {
            (Some(_), _) => Mode::Repeated,
            (None, true) => Mode::Required,
            (None, false) => Mode::Nullable,
        };
        let (kind, limits) =
            element.unwrap_or(kind).trim().split_once('(').unwrap_or((element.unwrap_or(kind).trim(), ")"));
        let limits = limits.trim_end_matches(')').split(',').filter(|limit| !limit.trim().is_empty());
        let limits = limits.map(|limit| limit.trim().parse().map_err(|_| wrong())).collect::<Result<Vec<i64>, _>>()?;
        let kind = match kind.trim() {
            "FLOAT64" => Type::Double,
            kind => Type::from_str_name(kind).ok_or_else(wrong)?,
        };
        let is_number = matches!(kind, Type::Numeric | Type::Bignumeric);
        let limit = |at: usize| limits.get(at).copied().unwrap_or(0);
        Ok(Self {
            name: name.trim_matches('`').to_owned(),
            kind,
            mode,
            default,
            max_length: if is_number { 0 } else { limit(0) },
            digits: if is_number { (limit(0), limit(1)) } else { (0, 0) },
        })
    }

    fn of_api(&self) -> TableFieldSchema {
        TableFieldSchema {
            name: self.name.clone(),
            r#type: self.kind.into(),
            mode: self.mode.into(),
            max_length: self.max_length,
            precision: self.digits.0,
            scale: self.digits.1,
            default_value_expression: self.default.clone().unwrap_or_default(),
            ..TableFieldSchema::default()
        }
    }

    fn of_rest(&self) -> Value {
        // REST has the names of the old SQL for these.
        let kind = match self.kind {
            Type::Int64 => "INTEGER",
            Type::Double => "FLOAT",
            Type::Bool => "BOOLEAN",
            Type::Struct => "RECORD",
            kind => kind.as_str_name(),
        };
        let mut field = json!({ "name": self.name, "type": kind, "mode": self.mode.as_str_name() });
        if let Some(default) = &self.default {
            field["defaultValueExpression"] = default.as_str().into();
        }
        for (name, limit) in [("maxLength", self.max_length), ("precision", self.digits.0), ("scale", self.digits.1)] {
            if limit > 0 {
                field[name] = limit.to_string().into();
            }
        }
        field
    }
}

impl Table {
    /// The schema that the Storage Write interface tells.
    pub(super) fn schema(&self) -> TableSchema {
        TableSchema { fields: self.known.iter().map(Column::of_api).collect() }
    }

    /// The resource that `tables.get` tells.
    pub(super) fn resource(&self, path: &str) -> Value {
        let mut parts = path.split('/').skip(1).step_by(2);
        let mut part = || parts.next().unwrap_or_default();
        let (project, dataset, table) = (part(), part(), part());
        let fields: Vec<Value> = self.columns.iter().map(Column::of_rest).collect();
        let mut resource = json!({
            "kind": "bigquery#table",
            "id": format!("{project}:{dataset}.{table}"),
            "tableReference": { "projectId": project, "datasetId": dataset, "tableId": table },
            "type": "TABLE",
            "location": "EU",
            "schema": { "fields": fields },
        });
        if let Some(column) = &self.partition_by {
            resource["timePartitioning"] = json!({ "type": "DAY", "field": column });
        }
        if !self.primary_key.is_empty() {
            resource["tableConstraints"] = json!({ "primaryKey": { "columns": self.primary_key } });
        }
        if self.require_partition_filter {
            resource["requirePartitionFilter"] = true.into();
        }
        resource
    }

    /// Changes the columns; the Storage Write interface learns of it now or when it is told to catch up.
    pub(super) fn change(&mut self, columns: Vec<Column>, known_at_once: bool) {
        self.columns = columns;
        if known_at_once {
            self.catch_up();
        }
    }

    /// The Storage Write interface learns the columns.
    pub(super) fn catch_up(&mut self) {
        self.known.clone_from(&self.columns);
        self.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_as_it_is_written() {
        let sql = "CREATE TABLE IF NOT EXISTS `p.d.t` (\n  `id` STRING(10) NOT NULL OPTIONS (description = \"a, b\"),\n  \
                   fare NUMERIC(10, 2) DEFAULT 0,\n  tags ARRAY<STRING>\n)\nPARTITION BY DATE(`seen`)\nCLUSTER BY `id`";
        let Created { name, if_not_exists, table } = Created::parse(sql).unwrap();
        assert_eq!((name.as_str(), if_not_exists), ("p.d.t", true));
        assert_eq!(table.partition_by.as_deref(), Some("seen"));
        let [id, fare, tags] = table.columns.as_slice() else { panic!("{table:?}") };
        assert_eq!((id.name.as_str(), id.kind, id.mode, id.max_length), ("id", Type::String, Mode::Required, 10));
        assert_eq!((fare.kind, fare.digits, fare.default.as_deref()), (Type::Numeric, (10, 2), Some("0")));
        assert_eq!((tags.kind, tags.mode), (Type::String, Mode::Repeated));
        let keyed = Created::parse("CREATE TABLE t (a INT64, b INT64, PRIMARY KEY (`b`, a) NOT ENFORCED)").unwrap();
        assert_eq!(keyed.table.primary_key, ["b", "a"]);
        for sql in [
            "DROP TABLE t",
            "CREATE TABLE t",
            "CREATE TABLE t (a)",
            "CREATE TABLE t (a THING)",
            "CREATE TABLE t (a INT64",
            "CREATE TABLE t (a INT64, PRIMARY KEY (a))",
            "CREATE TABLE t (a INT64, PRIMARY KEY (b) NOT ENFORCED)",
        ] {
            assert!(Created::parse(sql).is_err(), "{sql}");
        }
    }
}
