//! Views over panes that show one row for each window: what is known of it now.
//!
//! Where panes accumulate that is the newest pane. Where they are discarded it is what the panes of the newest epoch add up to. A
//! window whose newest pane is a retraction, or that was retracted in that epoch, has no row.

use super::WarehouseError;
use crate::row::ColumnType;
use crate::window::{Accumulation, Function, Measure};

/// A view to be made over a table of panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewView {
    /// Name as in the pipeline file.
    pub name: String,
    /// The table of panes, by its name in the pipeline file.
    pub table: String,
    /// The columns that panes are grouped by.
    pub groups: Vec<String>,
    /// The columns of the measures, and what is measured.
    pub measures: Vec<(String, Measure)>,
    /// Whether a pane has all events of its window so far.
    pub accumulation: Accumulation,
}

/// Which SQL a view is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Bigquery,
}

impl Dialect {
    /// A column in SQL.
    fn quote(self, name: &str) -> String {
        match self {
            Self::Sqlite => super::sqlite::quote(name),
            Self::Bigquery => format!("`{name}`"),
        }
    }
}

/// What the panes of a window have in common, and where it stands.
const WINDOW: &str = "PARTITION BY window_id";

impl NewView {
    /// That what is there under its name is not it.
    pub(super) fn is_another(&self) -> WarehouseError {
        let text = format!(
            "cannot make view {name}: there is something else of that name. If it is a view over panes as they were, drop it: it \
             holds no rows. Else give this one another name",
            name = self.name
        );
        WarehouseError { text, retryable: false }
    }

    /// The names of its columns, in their order.
    pub fn columns(&self) -> Vec<&str> {
        let measures = self.measures.iter().map(|(name, _)| name.as_str());
        ["window_start", "window_end"]
            .into_iter()
            .chain(self.groups.iter().map(String::as_str))
            .chain(measures)
            .chain(["timing", "pane_index", "epoch", "error", "window_id"])
            .collect()
    }

    /// Its query over a table, whose name is SQL. The error is why it cannot be had.
    pub(super) fn query(&self, table: &str, dialect: Dialect) -> Result<String, String> {
        let columns: Vec<String> = self.columns().into_iter().map(|column| dialect.quote(column)).collect();
        let columns = columns.join(", ");
        Ok(match self.accumulation {
            Accumulation::Accumulating => format!(
                "SELECT {columns} FROM (\n  SELECT {columns},\n    \
                 ROW_NUMBER() OVER ({WINDOW} ORDER BY epoch DESC, pane_index DESC) AS preflight_place\n  FROM {table}\n\
                 ) AS panes\nWHERE preflight_place = 1 AND timing <> 'RETRACTED'"
            ),
            Accumulation::Discarding => {
                let groups: String = self.groups.iter().map(|name| format!("{}, ", dialect.quote(name))).collect();
                let measures: Vec<&str> = self.measures.iter().map(|(name, _)| name.as_str()).collect();
                let measures: String = measures.iter().map(|name| format!("{}, ", dialect.quote(name))).collect();
                let mut sums = String::new();
                for (name, measure) in &self.measures {
                    let quoted = dialect.quote(name);
                    let sum = over_panes(name, &quoted, *measure, dialect)?;
                    // What is added up without a pane that has an error would be a wrong result.
                    sums.push_str(&format!(
                        "CASE WHEN MAX(error) OVER ({WINDOW}) IS NULL THEN {sum} END AS {quoted},\n    "
                    ));
                }
                format!(
                    "SELECT {columns} FROM (\n  SELECT window_start, window_end, {groups}timing, pane_index, epoch, window_id,\n    \
                     {sums}MAX(error) OVER ({WINDOW}) AS error,\n    \
                     ROW_NUMBER() OVER ({WINDOW} ORDER BY pane_index DESC) AS preflight_place,\n    \
                     MAX(CASE WHEN timing = 'RETRACTED' THEN 1 ELSE 0 END) OVER ({WINDOW}) AS preflight_retracted\n  FROM (\n    \
                     SELECT window_start, window_end, {groups}{measures}timing, pane_index, epoch, error, window_id,\n      \
                     MAX(epoch) OVER ({WINDOW}) AS preflight_epoch\n    FROM {table}\n  ) AS panes\n  \
                     WHERE epoch = preflight_epoch\n) AS windows\nWHERE preflight_place = 1 AND preflight_retracted = 0"
                )
            }
        })
    }
}

/// What the measure of a window's panes adds up to.
fn over_panes(name: &str, quoted: &str, measure: Measure, dialect: Dialect) -> Result<String, String> {
    let Measure { function, .. } = measure;
    let is_text = dialect == Dialect::Sqlite && measure.output() == ColumnType::Numeric;
    let of = |sql: &str| format!("{sql}({quoted}) OVER ({WINDOW})");
    match function {
        Function::Sum if is_text => Err(format!(
            "`{name}` cannot be added up over discarded panes: SQLite would add NUMERIC as floats. Let the panes accumulate"
        )),
        Function::Count | Function::Sum => Ok(of("SUM")),
        Function::Min if is_text => Ok(first_numeric(quoted, "ASC", "DESC")),
        Function::Max if is_text => Ok(first_numeric(quoted, "DESC", "ASC")),
        Function::Min => Ok(of("MIN")),
        Function::Max => Ok(of("MAX")),
        Function::Avg | Function::ApproxCountDistinct => Err(format!(
            "`{name}` cannot be told from discarded panes: those of {function} do not add up. Let the panes accumulate"
        )),
    }
}

/// The first of numbers that stand as text, exactly: canonical decimals of one sign and with as many digits before the point are
/// in the order of their texts, and those with more digits there are further from zero.
fn first_numeric(quoted: &str, order: &str, reverse: &str) -> String {
    let digits = format!("instr({quoted} || '.', '.')");
    format!(
        "FIRST_VALUE({quoted}) OVER ({WINDOW} ORDER BY {quoted} IS NULL, \
         CASE WHEN {quoted} LIKE '-%' THEN 1 - {digits} ELSE {digits} END {order}, \
         CASE WHEN {quoted} NOT LIKE '-%' THEN {quoted} END {order}, {quoted} {reverse})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(accumulation: Accumulation, measures: &[(&str, Function, ColumnType)]) -> NewView {
        let measure = |(name, function, input): &(&str, Function, ColumnType)| {
            ((*name).to_owned(), Measure { function: *function, input: Some(*input) })
        };
        NewView {
            name: "d.now".into(),
            table: "d.panes".into(),
            groups: vec!["sku".into()],
            measures: measures.iter().map(measure).collect(),
            accumulation,
        }
    }

    #[test]
    fn the_columns_are_the_windows_the_groups_the_measures_and_where_it_stands() {
        let view = view(Accumulation::Accumulating, &[("mean", Function::Avg, ColumnType::Numeric)]);
        let names =
            ["window_start", "window_end", "sku", "mean", "timing", "pane_index", "epoch", "error", "window_id"];
        assert_eq!(view.columns(), names);
        let sql = view.query("t", Dialect::Bigquery).unwrap();
        assert!(sql.starts_with("SELECT `window_start`, `window_end`, `sku`, `mean`, `timing`"), "{sql}");
        assert!(view.query("t", Dialect::Sqlite).unwrap().contains("\"mean\""));
    }

    #[test]
    fn what_does_not_add_up_exactly_is_refused() {
        use ColumnType::{Float64, Int64, Numeric};
        let refused = |function, kind, dialect| {
            let view = view(Accumulation::Discarding, &[("m", function, kind)]);
            view.query("t", dialect).err()
        };
        for dialect in [Dialect::Sqlite, Dialect::Bigquery] {
            for function in [Function::Avg, Function::ApproxCountDistinct] {
                assert!(refused(function, Int64, dialect).unwrap().contains("`m` cannot be told"), "{function}");
            }
            for function in [Function::Count, Function::Min, Function::Max] {
                assert_eq!(refused(function, Numeric, dialect), None, "{function}");
            }
            for kind in [Int64, Float64] {
                assert_eq!(refused(Function::Sum, kind, dialect), None, "{kind}");
            }
        }
        assert!(refused(Function::Sum, Numeric, Dialect::Sqlite).unwrap().contains("floats"));
        assert_eq!(refused(Function::Sum, Numeric, Dialect::Bigquery), None);
    }
}
