//! The `preflight` command. Everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    preflight::cli::main()
}
