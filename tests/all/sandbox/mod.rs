//! Guests that misbehave in every way there is: each is stopped at its limit, one that stays just under it is not, the
//! worker goes on, and no event changes what becomes of another.

mod command;
mod faults;
mod isolation;
mod limits;
mod manifest;
