//! Rules that are swapped while a worker runs.

mod guard;
mod load;
mod reload;
mod shadow;
