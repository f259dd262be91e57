//! Rows outside of any stream: diagnoses, for which once at most is enough.

use super::encode::Cell;
use super::schema;
use crate::row::{Row, ValueRef};
use crate::warehouse::NewTable;
use rusqlite::{Connection, params_from_iter};

/// Makes the table if it is missing, and writes the rows in one transaction.
pub(super) fn add(connection: &mut Connection, table: &NewTable, rows: &[Row]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(&schema::create_statement(table))?;
    let columns: Vec<String> = table.columns.iter().map(|column| schema::quote(&column.name)).collect();
    let places = vec!["?"; columns.len()].join(", ");
    let name = schema::quote(schema::table_name(&table.name));
    let mut insert =
        transaction.prepare_cached(&format!("INSERT INTO {name} ({}) VALUES ({places})", columns.join(", ")))?;
    for row in rows {
        let cells: Vec<Cell<'_>> = row.iter().map(|value| Cell::of(ValueRef::from(value))).collect();
        insert.execute(params_from_iter(cells.iter().map(Cell::bind)))?;
    }
    drop(insert);
    transaction.commit()
}
