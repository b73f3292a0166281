//! The command `fairground`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairground::main_with(&[])
}
