//! The binary: hands over to the library and returns its exit code.

fn main() -> std::process::ExitCode {
    topo::cli::main()
}
