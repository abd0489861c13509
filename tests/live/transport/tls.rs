//! Tests that AMQP with TLS uses the certificates and flags of HTTP.

use std::sync::LazyLock;

use secrecy::SecretString;
use topo::broker::transport::{AmqpOptions, AmqpTransport};
use topo::broker::{BaseUrl, Broker, BrokerError, ClientCertificate, ConnectionOptions};

use super::fixture::{Fixture, TYPES, fill, numbers, take};
use crate::support::{Node, Options, Tls, Vhost, block_on, until};

static SECURE: LazyLock<(Tls, Node)> = LazyLock::new(|| {
    let tls = Tls::create();
    let node = Node::start(Options::default().tls(&tls));
    (tls, node)
});

fn read(tls: &Tls, file: &str) -> Vec<u8> {
    std::fs::read(tls.path(file)).unwrap()
}

/// Returns options with the address that the broker reports, and with all certificates.
fn options(vhost: &Vhost<'_>) -> AmqpOptions {
    let (tls, node) = &*SECURE;
    let url = BaseUrl::parse(&node.tls_url()).unwrap().url;
    let mut http = ConnectionOptions::new(url, "guest", SecretString::from("guest"));
    http.ca_cert = Some(read(tls, "ca.pem"));
    http.client_cert = Some(ClientCertificate { cert: read(tls, "client.pem"), key: read(tls, "client.key") });
    http.retries = topo::broker::Retries::NONE;
    let address = block_on(Broker::connect(http.clone()).unwrap().amqp_address()).unwrap();
    assert!(address.tls && address.port != node.amqp_port(), "{address}");
    AmqpOptions::new(address, &vhost.name().into(), &http)
}

fn refused(options: AmqpOptions) -> BrokerError {
    match block_on(AmqpTransport::connect(options)) {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

#[test]
fn messages_are_moved_over_tls() {
    let vhost = SECURE.1.vhost("tls");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    fill(&fixture.amqp, &fixture.old, 0..3000, 1000);
    let transport = block_on(AmqpTransport::connect(options(&vhost))).unwrap();
    let moving = block_on(transport.start(fixture.order())).unwrap();
    until("all of them", || (moving.progress().moved == Some(3000)).then_some(()));
    block_on(moving.stop());
    assert!(numbers(&take(&fixture.amqp, &fixture.new, 3000)).into_iter().eq(0..3000));
}

#[test]
fn custom_ca_is_trusted() {
    let vhost = SECURE.1.vhost("trust");
    let other = Tls::create();
    // Neither the list of the system nor that of Mozilla contains this CA.
    for ca_cert in [None, Some(read(&other, "ca.pem"))] {
        let options = AmqpOptions { ca_cert, ..options(&vhost) };
        let error = refused(options.clone()).to_string();
        assert!(error.contains("a CA that is not trusted"), "{error}");
        block_on(block_on(AmqpTransport::connect(AmqpOptions { insecure: true, ..options })).unwrap().close());
    }
    let mut elsewhere = options(&vhost);
    elsewhere.address.host = "127.0.0.1".to_owned();
    block_on(block_on(AmqpTransport::connect(elsewhere)).unwrap().close());
    for pem in [&b"rubbish"[..], b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = refused(AmqpOptions { ca_cert: Some(pem.to_vec()), ..options(&vhost) });
        assert!(matches!(error, BrokerError::Certificate { what: "CA certificate", .. }), "{error:?}");
    }
}

#[test]
fn client_certificate_is_sent() {
    let vhost = SECURE.1.vhost("shown");
    let other = Tls::create();
    let foreign = ClientCertificate { cert: read(&other, "client.pem"), key: read(&other, "client.key") };
    let error = refused(AmqpOptions { client_cert: Some(foreign), ..options(&vhost) }).to_string();
    println!("foreign: {error}");
    assert!(error.starts_with("cannot connect to amqps://localhost:"), "{error}");
    let error = refused(AmqpOptions { client_cert: None, ..options(&vhost) }).to_string();
    println!("none: {error}");
    assert!(error.starts_with("cannot connect to amqps://localhost:"), "{error}");
    let broken = ClientCertificate { cert: b"rubbish".to_vec(), key: b"rubbish".to_vec() };
    let error = refused(AmqpOptions { client_cert: Some(broken), ..options(&vhost) });
    assert!(matches!(error, BrokerError::Certificate { what: "client certificate or its key", .. }), "{error:?}");
}

#[test]
fn wrong_port_is_reported() {
    let vhost = SECURE.1.vhost("port");
    let mut to_open = options(&vhost);
    to_open.address.port = SECURE.1.amqp_port();
    let error = refused(to_open).to_string();
    println!("TLS to the open port: {error}");
    assert!(error.contains("TLS") || error.contains("broke") || error.contains("closed"), "{error}");
    let mut to_secure = options(&vhost);
    to_secure.address.tls = false;
    let error = refused(to_secure);
    assert!(matches!(error, BrokerError::Connect { .. } | BrokerError::Timeout { .. }), "{error:?}");
}
