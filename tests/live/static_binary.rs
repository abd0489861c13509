//! Tests the static binary of a release in an empty root file system, as in the image: no libc, shell, certificates or
//! host names.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use crate::support::{Node, Options, Tls, child, temp_dir};

#[test]
fn static_binary_plans_applies_and_migrates() {
    let Some(binary) = std::env::var_os("TOPO_STATIC") else {
        // Written to the terminal, because the test harness hides the output of passing tests.
        let note = "NOT TESTED: the static binary of a release: TOPO_STATIC names none (release/build makes one)\n";
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    };
    let root = temp_dir::folder();
    fs::copy(&binary, root.path().join("topo")).unwrap();
    let tls = Tls::create();
    for file in ["ca.pem", "client.pem", "client.key"] {
        fs::copy(tls.path(file), root.path().join(file)).unwrap();
    }
    let node = Node::start(Options::default().tls(&tls));
    let vhost = node.vhost("alone");
    let spec = |length: u32| {
        let text = format!(
            "version: 1\nvhost: {}\nqueues: {{orders: {{type: classic, maxLength: {length}}}}}\n",
            vhost.name()
        );
        fs::write(root.path().join("topology.yaml"), text).unwrap();
    };
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let run = |code: i32, arguments: &[&str]| {
        // Without root, uses a user namespace, if the system permits it.
        let mut command = child(if is_root { "chroot" } else { "unshare" });
        command.args(if is_root { &[][..] } else { &["--map-root-user", "chroot"] });
        command.arg(root.path()).arg("/topo").args(arguments).env_clear();
        command.env("TOPO_USERNAME", "guest").env("TOPO_PASSWORD", "guest");
        let output = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
        let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{text}");
        // Joins wrapped lines.
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };

    assert!(run(0, &["--help"]).contains("Commands:"));
    assert!(run(0, &["version"]).contains("-linux-musl "));
    let url = node.url();
    spec(9);
    assert!(run(2, &["plan", "--url", &url, "--detailed-exitcode"]).contains("+ queue orders"));
    assert!(run(0, &["apply", "--url", &url, "--yes"]).contains("Applied: 1 of 1 step done."));
    // Tests TLS: the built-in Mozilla list does not contain this CA, but the specified file does. `localhost` needs no
    // hosts file.
    let secure_url = node.tls_url().replace("localhost", "127.0.0.1");
    let secure = ["plan", "--url", &secure_url, "--client-cert", "client.pem", "--client-key", "client.key"];
    let refused = run(1, &secure);
    assert!(refused.contains("a CA that is not trusted"), "{refused}");
    let trusted: Vec<&str> = secure.into_iter().chain(["--ca-cert", "ca.pem"]).collect();
    assert!(run(0, &trusted).contains("No changes."));
    // Tests AMQP: the queue contains messages, and its limit cannot change in place.
    vhost.amqp().fill("orders", 5);
    spec(8);
    let recreate = format!("queues/{}/orders=migrate", vhost.name());
    let allowed = "consumer-disruption,routing-gap,duplicates,reorder";
    let moved = [
        "apply",
        "--url",
        &url,
        "--yes",
        "--no-backup",
        "--transport",
        "amqp",
        "--recreate",
        &recreate,
        "--allow",
        allowed,
    ];
    run(0, &moved);
    assert_eq!(vhost.queue("orders")["arguments"]["x-max-length"], 8);
    assert_eq!(vhost.amqp().ready("orders"), 5);
}
