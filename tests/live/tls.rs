//! Tests TLS with a node that requires client certificates, and the errors of each side.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::thread;

use crate::support::{Node, Options, Tls, Topo, Vhost};

const SPEC: &str = "queues: {orders: {type: classic}}\n";

/// One node for all of these tests. It stops when its pipe closes at the end of the process.
static SECURE: LazyLock<(Tls, Node)> = LazyLock::new(|| {
    let tls = Tls::create();
    let node = Node::start(Options::default().tls(&tls));
    (tls, node)
});

fn path(tls: &Tls, file: &str) -> String {
    tls.path(file).display().to_string()
}

/// Returns topo without TLS flags.
fn bare(vhost: &Vhost<'_>) -> Topo {
    Topo::new(vhost).url(&SECURE.1.tls_url()).spec(SPEC)
}

/// Returns topo with all TLS flags.
fn trusted(vhost: &Vhost<'_>) -> Topo {
    shown(bare(vhost)).env("TOPO_CA_CERT", &path(&SECURE.0, "ca.pem"))
}

fn shown(topo: Topo) -> Topo {
    topo.env("TOPO_CLIENT_CERT", &path(&SECURE.0, "client.pem")).env("TOPO_CLIENT_KEY", &path(&SECURE.0, "client.key"))
}

fn pipe(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    Ok(())
}

/// Returns the same port at an address that the certificate does not contain.
fn elsewhere(port: u16) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let piped = TcpStream::connect(("127.0.0.1", port))
                .and_then(|broker| pipe(&client, &broker).and_then(|()| pipe(&broker, &client)));
            assert!(piped.is_ok());
        }
    });
    address
}

fn tls_port() -> u16 {
    SECURE.1.tls_url().rsplit(':').next().unwrap().parse().unwrap()
}

#[test]
fn private_ca_and_client_certificate_are_used() {
    let vhost = SECURE.1.vhost("tls");
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|file| path(&SECURE.0, file));
    let flags = ["--url", &SECURE.1.tls_url(), "--ca-cert", &ca, "--client-cert", &cert, "--client-key", &key];
    let topo = bare(&vhost).without_env("TOPO_URL");
    let output = topo.run(["plan"].into_iter().chain(flags)).expect_code(0);
    // The suggested command works unchanged.
    let (_, line) = output.stdout.trim_end().rsplit_once("\ntopo ").unwrap();
    let line = line.replace(" \\\n", " ");
    topo.run(line.split_whitespace().chain(["--yes"])).expect_code(0);
    assert_eq!(vhost.names("queues"), ["orders"]);
    trusted(&vhost).run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn missing_client_certificate_is_reported() {
    let vhost = SECURE.1.vhost("anonymous");
    let output = bare(&vhost).run(["plan", "--ca-cert", &path(&SECURE.0, "ca.pem")]).expect_code(1).expect_no_result();
    // A broker with TLS 1.2 only refuses the handshake.
    output.expect_error("a client certificate").expect_text("--client-cert FILE --client-key FILE");
    let half = bare(&vhost).run(["plan", "--client-cert", &path(&SECURE.0, "client.pem")]).expect_code(64);
    half.expect_error("--client-cert requires its key: --client-key FILE");
    let half = bare(&vhost).run(["plan", "--client-key", &path(&SECURE.0, "client.key")]).expect_code(64);
    half.expect_error("--client-key requires its certificate: --client-cert FILE");
}

#[test]
fn client_certificate_of_another_ca_is_reported() {
    let vhost = SECURE.1.vhost("foreign");
    let other = Tls::create();
    let topo = trusted(&vhost)
        .env("TOPO_CLIENT_CERT", &path(&other, "client.pem"))
        .env("TOPO_CLIENT_KEY", &path(&other, "client.key"));
    let output = topo.run(["plan"]).expect_code(1).expect_no_result();
    output.expect_error("does not accept the client certificate").expect_text("--client-cert FILE");
}

#[test]
fn untrusted_ca_is_reported() {
    let vhost = SECURE.1.vhost("untrusted");
    let other = Tls::create();
    for topo in [shown(bare(&vhost)), shown(bare(&vhost)).env("TOPO_CA_CERT", &path(&other, "ca.pem"))] {
        let output = topo.run(["plan"]).expect_code(1).expect_no_result();
        output.expect_error("a CA that is not trusted").expect_text("hint: set the CA that signed the certificate");
        for insecure in ["1", "true", "yes"] {
            topo.run(["plan", "--insecure"]).expect_code(0);
            trusted(&vhost).without_env("TOPO_CA_CERT").env("TOPO_INSECURE", insecure).run(["plan"]).expect_code(0);
        }
    }
    assert_eq!(shown(bare(&vhost)).env("TOPO_INSECURE", "0").run(["plan"]).code, Some(1));
}

#[test]
fn wrong_host_name_is_reported() {
    let vhost = SECURE.1.vhost("name");
    let address = elsewhere(tls_port());
    let topo = trusted(&vhost).url(&format!("https://{address}"));
    let output = topo.run(["plan"]).expect_code(1).expect_no_result();
    output.expect_error("is not valid for this host name").expect_text("use a host name that the certificate contains");
    topo.run(["plan", "--insecure"]).expect_code(0);
    trusted(&vhost).url(&format!("https://127.0.0.1:{}", tls_port())).run(["plan"]).expect_code(0);
}

#[test]
fn http_on_the_https_port_is_reported() {
    let vhost = SECURE.1.vhost("plain");
    let topo = bare(&vhost).url(&format!("http://127.0.0.1:{}", tls_port()));
    let output = topo.run(["plan"]).expect_code(1).expect_no_result();
    if SECURE.1.at_least(3, 10) {
        output.expect_error("https:// instead of http://").expect_text("hint: check --url");
    } else {
        // 3.8 on Erlang 23 closes the connection without a message.
        output.expect_error("the connection was lost");
    }
}

#[test]
fn invalid_certificate_files_are_reported() {
    let vhost = SECURE.1.vhost("rubbish");
    let topo = trusted(&vhost)
        .file("rubbish.pem", "not a certificate")
        .file("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .file("empty.pem", "");
    for (flag, what) in [
        ("--ca-cert", "CA certificate"),
        ("--client-cert", "client certificate"),
        ("--client-key", "client certificate or its key"),
    ] {
        for file in ["rubbish.pem", "broken.pem", "empty.pem"] {
            let output = topo.run(["plan", flag, file]).expect_code(1).expect_no_result();
            output.expect_error(what).expect_error("cannot be used").expect_text(file);
        }
        let output = topo.run(["plan", flag, "missing.pem"]).expect_code(64).expect_no_result();
        output.expect_error("cannot read missing.pem");
    }
}
