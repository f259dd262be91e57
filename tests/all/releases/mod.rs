//! The rule store and its commands.

mod crash;
mod damage;
mod gc;
mod history;
mod race;
mod read_only;
mod roles;
mod stage;
mod workers;
