//! Rules that are swapped while a worker runs.

mod guard;
mod reload;
mod shadow;
