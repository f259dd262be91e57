mod fields;
mod strictness;
