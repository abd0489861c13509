//! Tests that logins, permissions and tags are checked before the transfer.

use topo::broker::transport::{AmqpAddress, AmqpOptions, AmqpTransport, Fault};
use topo::broker::{Broker, BrokerError};

use super::fixture::{Fixture, TYPES, fill, http_options, options_of, shovel_transport_as, shovels};
use crate::support::{Node, Vhost, block_on};

fn refused(options: AmqpOptions) -> BrokerError {
    match block_on(AmqpTransport::connect(options)) {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

#[test]
fn failed_connections_are_reported() {
    let node = Node::shared();
    let (vhost, other) = (node.vhost("login"), node.vhost("other"));
    let user = node.user("").may_everything(&vhost);
    let error = refused(options_of(&vhost, &user.name, "wrong"));
    assert!(matches!(&error, BrokerError::Unauthorized { username, .. } if *username == user.name), "{error:?}");
    assert!(!error.to_string().contains("wrong"), "{error}");
    let error = refused(options_of(&other, &user.name, &user.password));
    assert!(matches!(error, BrokerError::AccessRefused { .. }), "{error:?}");
    let options = AmqpOptions { vhost: "not-there".into(), ..options_of(&vhost, "guest", "guest") };
    let error = refused(options);
    assert!(matches!(&error, BrokerError::AccessRefused { reason, .. } if reason.contains("not-there")), "{error:?}");
    // The port is open, but the server does not use AMQP.
    let mut options = options_of(&vhost, "guest", "guest");
    options.address.port = node.http_port();
    options.retries = topo::broker::Retries::NONE;
    assert!(matches!(refused(options.clone()), BrokerError::Connect { .. } | BrokerError::Timeout { .. }));
    // The port is closed.
    options.address.port = 1;
    let error = refused(options.clone());
    assert!(matches!(&error, BrokerError::Connect { .. }), "{error:?}");
    assert_eq!(error.to_string(), "cannot connect to amqp://127.0.0.1:1: connection refused");
    options.address.host = "no-such-host.invalid".to_owned();
    assert!(refused(options).to_string().ends_with(": no such host"));
}

#[test]
fn unusual_user_names_and_passwords_work() {
    let node = Node::shared();
    for name in ["a/b@c:d", "%41", "ü 日本"] {
        let vhost = Vhost::create(node, format!("of {name}"));
        let user = crate::support::User::create(node, name.to_owned(), "").may_everything(&vhost);
        let fixture = Fixture::create(&vhost, "", TYPES[0]);
        let transport = block_on(AmqpTransport::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
        let moving = block_on(transport.start(fixture.order())).unwrap();
        block_on(moving.stop());
        block_on(transport.close());
    }
}

#[test]
fn missing_permissions_are_reported() {
    let node = Node::shared();
    let vhost = node.vhost("permissions");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    fill(&fixture.amqp, &fixture.old, 0..5, 0);
    for (write, read, what) in [("^$", ".*", "tap"), (".*", "^$", "old")] {
        let user = node.user("").may(&vhost, ".*", write, read);
        let transport = block_on(AmqpTransport::connect(options_of(&vhost, &user.name, &user.password))).unwrap();
        match block_on(transport.start(fixture.order())) {
            Ok(_) => panic!("it was started without permission for {what}"),
            Err(Fault::Broker(BrokerError::AccessRefused { username, reason, .. })) => {
                assert_eq!(username, user.name);
                assert!(reason.contains(what), "{reason}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(fixture.amqp.ready(&fixture.old), 5);
    assert_eq!(fixture.amqp.ready(&fixture.new), 0);
}

#[test]
fn missing_shovel_rights_are_reported() {
    let node = Node::shared();
    let vhost = node.vhost("tags");
    let fixture = Fixture::create(&vhost, "", TYPES[0]);
    for (tags, may) in [
        ("management", false),
        ("policymaker", false),
        ("monitoring", false),
        ("policymaker,monitoring", true),
        ("administrator", true),
    ] {
        let user = node.user(tags).may_everything(&vhost);
        let transport = shovel_transport_as(&vhost, &user.name, &user.password);
        match block_on(transport.check()) {
            Ok(()) => assert!(may, "{tags}"),
            Err(Fault::Broker(BrokerError::WrongTag { .. } | BrokerError::AccessRefused { .. })) => {
                assert!(!may, "{tags}");
            }
            Err(other) => panic!("{tags}: {other:?}"),
        }
        match block_on(transport.start(fixture.order())) {
            Ok(moving) => {
                assert!(may, "{tags}");
                block_on(moving.stop()).unwrap();
            }
            Err(_) => assert!(!may, "{tags}"),
        }
    }
    assert!(shovels(&vhost).is_empty());
}

#[test]
fn amqp_address_comes_from_the_broker() {
    let node = Node::shared();
    let vhost = node.vhost("address");
    let (plain, monitoring) = (node.user("management").may_everything(&vhost), node.user("monitoring"));
    let address = |user: &str, password: &str| {
        let broker = Broker::connect(http_options(node, user, password)).unwrap();
        block_on(broker.amqp_address()).unwrap()
    };
    let expected = AmqpAddress { host: "127.0.0.1".to_owned(), port: node.amqp_port(), tls: false };
    assert_eq!(address("guest", "guest"), expected);
    let monitoring = monitoring.may_everything(&vhost);
    assert_eq!(address(&monitoring.name, &monitoring.password), expected);
    // For a user who cannot read the listeners, topo uses the default port.
    assert_eq!(address(&plain.name, &plain.password).port, 5672);
}
