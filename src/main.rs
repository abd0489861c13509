//! The binary: hands over to the library and returns its exit code.

/// A plan of ten thousand queues is millions of small values: with the C library's own allocator it takes 1.7 times as
/// long, with musl's several times.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    topo::cli::main()
}
