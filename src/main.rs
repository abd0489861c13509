//! The `topo` binary. Calls the library and returns its exit code.

/// Replaces the system allocator. A plan for ten thousand queues contains millions of small values. Planning takes 1.7
/// times as long with the glibc allocator, and several times as long with the musl allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    topo::cli::main()
}
