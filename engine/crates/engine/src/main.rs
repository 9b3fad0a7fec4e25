use std::process::ExitCode;

fn main() -> ExitCode {
    cachemark_engine::main()
}
