//! Tests connection failures: passwords, permissions, addresses, and servers other than RabbitMQ. Each failure causes
//! one sentence with the correct exit code and without a secret.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::support::{Node, Output, Topo, User, Vhost};

const SPEC: &str = "\
exchanges: {orders: {type: topic}}
queues: {orders.mail: {type: classic}, orders.work: {type: classic, messageTtl: 30s}}
bindings: [{source: orders, destination: orders.work, routingKey: 'order.#'}]
";

/// Starts a server that reads a request head and responds with these bytes, until this process ends. Returns its URL.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

/// Runs a plan and an apply against a server other than RabbitMQ.
fn both(url: &str) -> [Output; 2] {
    let topo = Topo::offline().url(url).spec(SPEC);
    // Both run concurrently, because topo retries transient errors for seconds.
    let runs = [topo.start(["plan"]), topo.start(["apply", "--yes"])];
    runs.map(|run| run.wait().expect_code(1).expect_no_result())
}

fn as_user<'a>(vhost: &'a Vhost<'a>, user: &User<'_>) -> Topo {
    Topo::new(vhost).user(user).spec(SPEC)
}

#[test]
fn wrong_password_is_reported_but_not_printed() {
    let vhost = Node::shared().vhost("password");
    let user = Node::shared().user("management").may_everything(&vhost);
    let apart = as_user(&vhost, &user).env("TOPO_PASSWORD", "hush-hush");
    let in_url = as_user(&vhost, &user)
        .url(&Node::shared().url().replace("//", &format!("//{}:hush-hush@", user.name)))
        .without_env("TOPO_USERNAME")
        .without_env("TOPO_PASSWORD");
    for topo in [apart, in_url] {
        for command in [["-v", "plan"], ["apply", "--yes"], ["plan", "--out=plan.json"]] {
            let output = topo.run(command).expect_code(1).expect_no_result().expect_no_text("hush");
            output.expect_error(&format!("login as user `{}` failed", user.name)).expect_text("hint: ");
        }
        assert!(!topo.path("plan.json").exists());
    }
    assert!(vhost.names("queues").is_empty());
}

#[test]
fn correct_password_is_not_printed() {
    let vhost = Node::shared().vhost("secret");
    let user = Node::shared().user("management").may_everything(&vhost);
    let login = format!("//{}:{}@", user.name, user.password);
    let topo = as_user(&vhost, &user)
        .without_env("TOPO_USERNAME")
        .without_env("TOPO_PASSWORD")
        .url(&Node::shared().url().replace("//", &login));
    for arguments in [
        &["-v", "plan", "--out", "plan.json"][..],
        &["plan", "--format", "json"],
        &["plan", "--format", "markdown"],
        &["plan", "--format", "github"],
        &["apply", "--yes", "-v"],
        &["apply", "--yes", "--format", "json"],
    ] {
        topo.run(arguments.iter().copied()).expect_code(0).expect_no_text(&user.password).expect_no_text(&login);
    }
    assert!(!topo.read("plan.json").contains(&user.password));
    // The suggested command contains the URL without its user info.
    let typed = Node::shared().url().replace("//", &login);
    let output = topo.without_env("TOPO_URL").run(["plan", "--url", &typed]).expect_code(0);
    output.expect_text("No changes").expect_no_text(&user.password);
}

#[test]
fn missing_vhost_permissions_are_reported() {
    let vhost = Node::shared().vhost("stranger");
    let user = Node::shared().user("management");
    let topo = as_user(&vhost, &user);
    // 4.2.9 and 4.3.3 respond with 404, as for a missing vhost.
    for command in [&["plan"][..], &["apply", "--yes"]] {
        let output = topo.run(command.iter().copied());
        let is_plan = output.code == Some(0);
        if output.stdout.contains("+ vhost") {
            assert_eq!(is_plan, command == ["plan"], "{output}");
            output.expect_text("cannot create the vhost (or cannot see it)").expect_text("rabbitmqctl add_vhost");
        } else {
            let least = format!("rabbitmqctl set_permissions -p {} {} '^$' '^$' '^$'", vhost.name(), user.name);
            output.expect_code(1).expect_error(&format!("user `{}`", user.name)).expect_text(&least);
        }
    }
    assert!(vhost.names("queues").is_empty());
    // These permissions are sufficient for a plan.
    let user = user.may(&vhost, "^$", "^$", "^$");
    as_user(&vhost, &user).run(["plan"]).expect_code(0).expect_text("+ queue orders.work").expect_no_text("+ vhost");
}

#[test]
fn missing_permission_for_one_queue_stops_the_apply() {
    let vhost = Node::shared().vhost("partial");
    let user = Node::shared().user("management").may(&vhost, "^(?!orders.mail).*", ".*", ".*");
    let topo = as_user(&vhost, &user);
    let output = topo.run(["apply", "--yes"]).expect_code(4).expect_error("1 failed, 1 not attempted");
    assert!(output.stdout.contains("failed        declare queue orders.mail"), "{output}");
    assert!(output.stdout.contains("not attempted bind orders"), "{output}");
    assert!(output.stderr.contains("caused by: user") && output.stderr.contains("Access refused."), "{output}");
    let least = r"'^orders\.mail$|CONFIGURE' 'WRITE' 'READ'";
    assert!(output.stderr.contains(&format!("rabbitmqctl set_permissions -p {} {} {least}", vhost.name(), user.name)));
    assert!(vhost.queue("orders.mail").is_null() && !vhost.exchange("orders").is_null());
    assert!(vhost.list("bindings").is_empty() && vhost.queue("topo.lock").is_null());
    // If the first step fails, the message and the exit code differ.
    vhost.http().delete(&vhost.path("queues", &["orders.work"])).expect_status(204);
    let narrow = Node::shared().user("management").may(&vhost, "^topo", ".*", ".*");
    let output = as_user(&vhost, &narrow).run(["apply", "--yes"]).expect_code(1);
    output.expect_error("the first step failed; nothing was changed");
    let allowed = Node::shared().user("management").may_everything(&vhost);
    as_user(&vhost, &allowed).run(["apply", "--yes"]).expect_code(0);
    as_user(&vhost, &allowed).run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

#[test]
fn missing_tag_is_reported() {
    let vhost = Node::shared().vhost("tagless");
    let user = Node::shared().user("").may_everything(&vhost);
    let output = as_user(&vhost, &user).run(["plan"]).expect_code(1).expect_no_result();
    output
        .expect_error("does not have the tag")
        .expect_text(&format!("rabbitmqctl set_user_tags {} management", user.name));
}

#[test]
fn tag_management_suffices_except_for_policies() {
    let vhost = Node::shared().vhost("least");
    let user = Node::shared().user("management").may_everything(&vhost);
    let topo = as_user(&vhost, &user);
    topo.run(["apply", "--yes"]).expect_code(0);
    // Moves a binding, recreates a queue, and deletes another queue.
    topo.rewrite(
        "owns: ['orders*']
exchanges: {orders: {type: topic}}
queues: {orders.work: {type: classic, messageTtl: 60s, onConflict: discard}}
bindings: [{source: orders, destination: orders.work, routingKey: 'paid.#'}]
",
    );
    let allow = "routing-gap,routing-loss,message-loss,consumer-disruption";
    topo.run(["apply", "--yes", "--prune", "--allow", allow]).expect_code(0).expect_no_text("rabbitmqctl");
    assert_eq!(vhost.names("queues"), ["orders.work"]);
    assert_eq!(vhost.queue("orders.work")["arguments"]["x-message-ttl"], 60_000);
    topo.run(["plan", "--detailed-exitcode", "--prune"]).expect_code(0).expect_text("No changes");
    // For policies, topo suggests the least privileged tag that is sufficient.
    let policies = "policies: {short: {pattern: '^orders', applyTo: queues, definition: {max-length: 10}}}\n";
    topo.rewrite(policies);
    let output = topo.run(["apply", "--yes", "--allow", "message-drop"]).expect_code(1);
    output
        .expect_error("nothing was changed")
        .expect_text(&format!("rabbitmqctl set_user_tags {} policymaker", user.name));
    let policymaker = Node::shared().user("policymaker").may_everything(&vhost);
    let topo = as_user(&vhost, &policymaker);
    topo.rewrite(policies);
    topo.run(["apply", "--yes", "--allow", "message-drop"]).expect_code(0);
    assert_eq!(vhost.names("policies"), ["short"]);
}

#[test]
fn missing_vhost_requires_the_right_to_create_it() {
    let vhost = Node::shared().vhost("other");
    let user = Node::shared().user("management").may_everything(&vhost);
    let topo = Topo::for_name(Node::shared(), "not-there").user(&user).spec(SPEC);
    topo.run(["plan"]).expect_code(0).expect_text("+ vhost not-there");
    let output = topo.run(["apply", "--yes"]).expect_code(1).expect_error("lacks rights for this plan");
    output.expect_text("rabbitmqctl add_vhost not-there").expect_text("cannot create the vhost");
}

#[test]
fn created_vhost_counts_as_a_change() {
    let name = "made-for-the-lock";
    let topo = Topo::for_name(Node::shared(), name).spec(SPEC);
    let output = topo.run(["apply", "--yes", "--format", "json"]).expect_code(0);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["vhosts"][0]["done"].as_array().unwrap().len(), 5, "{output}");
    assert_eq!(report["vhosts"][0]["done"][0]["address"], format!("vhosts/{name}"), "{output}");
    // The number of progress lines equals the number of planned steps.
    let output = output.expect_text("1/5 write vhost settings\n");
    let counted: Vec<&str> = output.stderr.lines().filter(|line| line.contains("/5 ")).collect();
    assert_eq!(counted.len(), 5, "{output}");
    Node::shared().http().delete(&format!("/api/vhosts/{name}")).expect_status(204);
}

#[test]
fn unreachable_addresses_are_reported() {
    for output in both("http://no-such-host.invalid:15672") {
        output.expect_error("no such host").expect_text("hint: check --url");
    }
}

#[test]
fn closed_port_and_wrong_protocol_are_reported() {
    // No process listens on port 1, and no other test uses it.
    for output in both("http://127.0.0.1:1") {
        output.expect_error("connection refused").expect_text("rabbitmq-plugins enable rabbitmq_management");
    }
    for output in both(&format!("http://127.0.0.1:{}", Node::shared().amqp_port())) {
        output.expect_error("not HTTP").expect_text("hint: check --url");
    }
    for output in both(&Node::shared().url().replace("http:", "https:")) {
        output.expect_error("http:// instead of https://");
    }
}

#[test]
fn response_of_a_reverse_proxy_is_reported() {
    let page = answering(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html><title>Welcome</title>to nginx!</html>",
    );
    for output in both(&page) {
        output.expect_error("is not a RabbitMQ management API").expect_text("Welcome to nginx!").expect_text("--url");
    }
    let login = answering(
        "HTTP/1.1 302 Found\r\nLocation: https://me:hush@sso.example/login?token=hush\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    for output in both(&login) {
        output.expect_error("redirects to https://sso.example/login").expect_no_text("hush");
    }
    let bad = answering(
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<h1>502 Bad Gateway</h1>",
    );
    for output in both(&bad) {
        output.expect_error("502 Bad Gateway").expect_no_text("<h1>");
    }
}

#[test]
fn malformed_responses_are_reported() {
    for (answer, words) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"rabbitmq_vers",
            "cannot parse the response",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[1]",
            "cannot parse the response",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{}", "RabbitMQ version"),
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", "cannot parse the response"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "not a RabbitMQ management API"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
    ] {
        for output in both(&answering(answer)) {
            output.expect_error(words);
        }
    }
}

#[test]
fn help_does_not_print_environment_values() {
    let topo = Topo::offline().env("TOPO_VAR", "TOKEN=hush").url("http://me:hush@host").env("TOPO_PASSWORD", "hush");
    for command in [&["plan", "--help"][..], &["apply", "-h"], &["--help"]] {
        topo.run(command.iter().copied()).expect_code(0).expect_no_text("hush");
    }
    let typed = topo.run(["plan", "--password", "hush"]).expect_code(64).expect_no_result().expect_no_text("hush");
    typed.expect_error("a password cannot be passed as an argument").expect_text("TOPO_PASSWORD");
    let source = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/arguments.rs")).unwrap();
    assert!(!source.contains("env = \"TOPO_PASSWORD\""), "clap would repeat a wrong value");
}
