//! Checks the precedence of connection settings: flags, topo's variables, rabbitmqadmin's variables,
//! `rabbitmqadmin.conf`, defaults. The user has no vhost, so the broker's refusal contains the user name.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::support::{Node, Topo, User, Vhost};

const SPEC: &str = "queues: {orders: {type: classic}}\n";

fn user_without_vhost() -> User<'static> {
    Node::shared().user("management")
}

/// Runs topo without connection settings, with a spec for the vhost.
fn without(vhost: &Vhost<'_>) -> Topo {
    Topo::new(vhost).without_env("TOPO_URL").without_env("TOPO_USERNAME").without_env("TOPO_PASSWORD").spec(SPEC)
}

/// Checks that topo logs in as this user, whose name is in the refusal. Uses `apply`, because 4.2.9 and 4.3.3 report an
/// inaccessible vhost as missing.
fn logged_in(topo: &Topo, arguments: &[&str], user: &User<'_>) {
    let output = topo.run(["apply", "--yes"].into_iter().chain(arguments.iter().copied())).expect_code(1);
    output.expect_error(&format!("error: user `{}` ", user.name)).expect_no_text("secret");
}

fn ini(name: &str, user: &User<'_>, more: &str) -> String {
    let port = Node::shared().http_port();
    let User { name: username, password, .. } = user;
    format!("[{name}]\nhostname = 127.0.0.1\nport = {port}\nusername = {username}\npassword = {password}\n{more}\n")
}

fn toml(name: &str, user: &User<'_>, more: &str) -> String {
    let port = Node::shared().http_port();
    let User { name: username, password, .. } = user;
    format!(
        "[{name}]\nhostname = \"127.0.0.1\"\nport = {port}\nusername = \"{username}\"\npassword = \"{password}\"\n{more}\n"
    )
}

#[test]
fn each_source_takes_precedence_over_the_next() {
    let vhost = Node::shared().vhost("places");
    let [flag, variable, in_url, operators, operators_url, file] = [(); 6].map(|()| user_without_vhost());
    let url = Node::shared().url();
    let with_login = |user: &User<'_>| url.replace("//", &format!("//{}:{}@", user.name, user.password));
    // Adds the sources one by one, from the lowest precedence to the highest.
    let topo = without(&vhost).file(".rabbitmqadmin.conf", &ini("default", &file, ""));
    logged_in(&topo, &[], &file);
    let topo = topo.env("RABBITMQADMIN_BASE_URI", &with_login(&operators_url));
    logged_in(&topo, &[], &operators_url);
    let topo = topo
        .env("RABBITMQADMIN_USERNAME", &operators.name)
        .env("RABBITMQADMIN_PASSWORD", &operators.password)
        .env("RABBITMQADMIN_TARGET_HOST", "no-such-host.invalid");
    logged_in(&topo, &[], &operators);
    let topo = topo.url(&with_login(&in_url));
    logged_in(&topo, &[], &in_url);
    let topo = topo.user(&variable);
    logged_in(&topo, &[], &variable);
    let topo = topo.file("password", &format!("{}\n", flag.password)).url("http://no-such-host.invalid");
    logged_in(&topo, &["--url", &url, "--username", &flag.name, "--password-file", "password"], &flag);
}

#[test]
fn rabbitmqadmin_host_and_port_are_used() {
    let vhost = Node::shared().vhost("target");
    let user = user_without_vhost();
    let port = Node::shared().http_port().to_string();
    let topo = without(&vhost)
        .env("RABBITMQADMIN_TARGET_HOST", "127.0.0.1")
        .env("RABBITMQADMIN_TARGET_PORT", &port)
        .env("RABBITMQADMIN_USERNAME", &user.name)
        .env("RABBITMQADMIN_PASSWORD", &user.password);
    logged_in(&topo, &[], &user);
}

#[test]
fn default_user_needs_no_settings() {
    let vhost = Node::shared().vhost("guest");
    without(&vhost).url(&Node::shared().url()).run(["plan"]).expect_code(0);
    // An empty variable is treated as unset, as in a pipeline without a value.
    let topo = without(&vhost).env("TOPO_USERNAME", "").env("TOPO_PASSWORD", "").env("TOPO_CA_CERT", "");
    topo.run(["plan", "--url", &Node::shared().url()]).expect_code(0);
    let output = topo.env("TOPO_USERNAME", "me").run(["plan"]).expect_code(64).expect_no_result();
    output.expect_error("no password was given for user `me`").expect_text("hint: set TOPO_PASSWORD");
}

#[test]
fn password_file_ignores_one_line_end() {
    let vhost = Node::shared().vhost("file");
    let user = user_without_vhost();
    let topo = without(&vhost).url(&Node::shared().url()).env("TOPO_USERNAME", &user.name);
    for end in ["", "\n", "\r\n"] {
        topo.write("password", &format!("{}{end}", user.password));
        logged_in(&topo, &["--password-file", "password"], &user);
    }
    // topo removes only one line end.
    topo.write("password", &format!("{} \n", user.password));
    topo.run(["plan", "--password-file", "password"])
        .expect_code(1)
        .expect_error("login as user")
        .expect_no_text("secret");
    let output = topo.run(["plan", "--password-file", "nowhere"]).expect_code(64).expect_no_result();
    output.expect_error("cannot read nowhere");
}

#[test]
fn node_is_found_in_both_file_formats() {
    let vhost = Node::shared().vhost("nodes");
    let [default, other] = [(); 2].map(|()| user_without_vhost());
    let written: [fn(&str, &User<'_>, &str) -> String; 2] = [ini, toml];
    for write in written {
        let topo = without(&vhost);
        topo.write(".rabbitmqadmin.conf", &(write("default", &default, "") + &write("other", &other, "")));
        logged_in(&topo, &[], &default);
        logged_in(&topo, &["-N", "other"], &other);
        let output = topo.run(["plan", "-N", "third"]).expect_code(64).expect_no_result();
        output.expect_error("no node `third`; the file contains default, other").expect_no_text("secret");
        let topo = topo.env("RABBITMQADMIN_NODE_ALIAS", "other");
        logged_in(&topo, &[], &other);
        let topo = topo.env("TOPO_NODE", "default");
        logged_in(&topo, &[], &default);
        logged_in(&topo, &["--node", "other"], &other);
        // `--node` takes precedence over the broker in the environment.
        let elsewhere =
            topo.url("http://no-such-host.invalid").env("RABBITMQADMIN_BASE_URI", "http://no-such-host.invalid");
        logged_in(&elsewhere, &["-N", "other"], &other);
        let topo = elsewhere.without_env("TOPO_URL").without_env("RABBITMQADMIN_BASE_URI");
        // `--config` sets a different path.
        topo.write("elsewhere.conf", &write("third", &other, ""));
        logged_in(&topo, &["--config", "elsewhere.conf", "-N", "third"], &other);
        let output = topo.run(["plan", "--config", "nowhere.conf"]).expect_code(64);
        output.expect_error("cannot read nowhere.conf");
    }
}

#[test]
fn file_error_contains_no_secrets() {
    let vhost = Node::shared().vhost("broken");
    let topo = without(&vhost);
    for text in [
        "[default]\nhostname = \"h\"\npassword = \"secret\n",
        "[default]\nhostname = \"h\"\nport = \"secret\"\n",
        "[default]\nport = secret\n",
        "secret\n",
    ] {
        topo.write(".rabbitmqadmin.conf", text);
        let output = topo.run(["plan"]).expect_code(64).expect_no_result().expect_no_text("secret");
        output.expect_error(".rabbitmqadmin.conf: ");
    }
}

/// Starts a reverse proxy that removes a path prefix. It responds to other paths with 404. Returns its port.
fn prefixing(prefix: &'static str, port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || forward(&client, prefix, port));
        }
    });
    own
}

/// Forwards one request per connection. Only the first line is changed.
fn forward(mut client: &TcpStream, prefix: &str, port: u16) -> io::Result<()> {
    let mut from_client = BufReader::new(client);
    let mut first = String::new();
    from_client.read_line(&mut first)?;
    let mut head = first.replacen(&format!(" {prefix}/"), " /", 1);
    if head == first {
        return client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    head.push_str("Connection: close\r\n");
    let mut length = 0;
    loop {
        let mut line = String::new();
        from_client.read_line(&mut line)?;
        if let Some(("content-length", value)) = line.to_ascii_lowercase().split_once(':') {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from_client.read_exact(&mut body)?;
    let mut broker = TcpStream::connect(("127.0.0.1", port))?;
    broker.write_all(head.as_bytes())?;
    broker.write_all(&body)?;
    io::copy(&mut broker, &mut client).map(|_| ())
}

#[test]
fn path_prefix_is_supported() {
    let vhost = Node::shared().vhost("prefix");
    let port = prefixing("/rabbit/mq", Node::shared().http_port());
    let user = Node::shared().user("management").may_everything(&vhost);
    for end in ["/rabbit/mq", "/rabbit/mq/", "/rabbit/mq/api", "/rabbit/mq/api/"] {
        let topo = without(&vhost).user(&user).url(&format!("http://127.0.0.1:{port}{end}"));
        topo.run(["apply", "--yes"]).expect_code(0);
    }
    assert_eq!(vhost.names("queues"), ["orders"]);
    let output = without(&vhost).user(&user).url(&format!("http://127.0.0.1:{port}")).run(["plan"]).expect_code(1);
    output.expect_error("not a RabbitMQ management API").expect_text("path prefix");
    let conf = format!("[default]\nhostname = \"127.0.0.1\"\nport = {port}\npath_prefix = \"/rabbit/mq/api\"\n");
    let topo = without(&vhost).user(&user).file(".rabbitmqadmin.conf", &conf);
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text(&format!("http://127.0.0.1:{port}/rabbit/mq"));
}
