//! Tests that a plan lists the permissions that its user does not have, and that an apply without them changes nothing.

use serde_json::json;

use crate::support::{Fault, Node, Output, Proxy, Topo, User, Vhost, puts};

const SPEC: &str = "\
exchanges: {dead: {type: fanout}, orders: {type: topic, alternateExchange: dead}}
queues: {orders.mail: {type: classic}, orders.work: {type: classic, deadLetter: {exchange: dead}}}
bindings: [{source: orders, destination: orders.work, routingKey: 'order.#'}, {source: dead, destination: orders.mail}]
";
const REFUSED: &str = "lacks rights for this plan; nothing was changed";

/// Grants the permissions of the printed command: `rabbitmqctl set_permissions -p VHOST USER 'C' 'W' 'R'`.
fn grant(output: &Output, vhost: &Vhost<'_>, user: &User<'_>) -> [String; 3] {
    let all = format!("{} {}", output.stdout, output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let command = format!("rabbitmqctl set_permissions -p {} {} ", vhost.name(), user.name);
    let (_, rest) = all.split_once(&command).unwrap_or_else(|| panic!("no `{command}`: {output}"));
    let mut patterns = rest.split('\'').skip(1).step_by(2).map(str::to_owned);
    let patterns = [(); 3].map(|()| patterns.next().unwrap_or_else(|| panic!("three patterns: {output}")));
    let [configure, write, read] = &patterns;
    let path = vhost.path("permissions", &[&user.name]);
    let body = json!({"configure": configure, "write": write, "read": read});
    assert!(vhost.http().put(&path, &body).is_success(), "{output}");
    patterns
}

#[test]
fn plan_lists_missing_permissions() {
    let vhost = Node::shared().vhost("rights");
    let user = Node::shared().user("administrator").may(&vhost, "^orders", "", "");
    let topo = Topo::new(&vhost).user(&user).spec(SPEC);
    let output = topo.run(["plan"]).expect_code(0);
    let lacks = format!(
        "user `{}` has no permission to configure `dead`, `topo.lock`; write `dead`, `orders.mail`, `orders.work`; read \
         `dead`, `orders`, `orders.work`; topo apply will refuse this plan",
        user.name
    );
    let output = output.expect_text(&lacks).expect_text(&format!("info vhosts/{}", vhost.name()));
    let refused = topo.run(["apply", "--yes"]).expect_code(1).expect_error(REFUSED);
    assert!(
        vhost.names("queues").is_empty()
            && vhost.names("exchanges").iter().all(|name| name.starts_with("amq.") || name.is_empty())
    );
    let report = topo.run(["apply", "--yes", "--format", "json"]).expect_code(1).expect_error(REFUSED);
    assert_eq!(report.json()["result"], "failed", "{report}");
    topo.run(["apply", "--dry-run"]).expect_code(0).expect_text(&lacks);
    // The broker refuses the lock first.
    let flag = "--ignore-missing-rights";
    let refused = refused.expect_text(flag);
    topo.run(["apply", "--yes", flag]).expect_code(1).expect_error("PUT /api/queues").expect_no_text(REFUSED);
    // The command grants permissions for exactly the listed names.
    let patterns = grant(&output, &vhost, &user);
    assert_eq!(patterns, grant(&refused, &vhost, &user));
    let read = r"^dead$|^orders$|^orders\.work$".to_owned();
    assert_eq!(
        patterns,
        [r"^dead$|^topo\.lock$|^orders".to_owned(), r"^dead$|^orders\.mail$|^orders\.work$".to_owned(), read]
    );
    topo.run(["plan"]).expect_code(0).expect_no_text("permission");
    topo.run(["apply", "--yes"]).expect_code(0);
    topo.run(["plan"]).expect_code(0).expect_text("No changes");
}

#[test]
fn administrator_without_permissions_is_refused() {
    let vhost = Node::shared().vhost("rights-none");
    let user = Node::shared().user("administrator");
    let topo = Topo::new(&vhost).user(&user).spec(SPEC);
    let output = topo.run(["plan"]).expect_code(0).expect_text("has no permission to configure");
    topo.run(["apply", "--yes"]).expect_code(1).expect_error(REFUSED);
    grant(&output, &vhost, &user);
    topo.run(["apply", "--yes"]).expect_code(0);
}

#[test]
fn plan_lists_missing_tags() {
    let vhost = Node::shared().vhost("rights-tags");
    let spec = "policies: {short: {pattern: '^q', applyTo: queues, definition: {max-length: 10}}}\n";
    let user = Node::shared().user("monitoring").may_everything(&vhost);
    let topo = Topo::new(&vhost).user(&user).spec(spec);
    let output = topo.run(["plan"]).expect_code(0);
    let tags = |tag: &str| format!("rabbitmqctl set_user_tags {} monitoring {tag}", user.name);
    output.expect_text("cannot write policies").expect_text(&tags("policymaker"));
    topo.run(["apply", "--yes"]).expect_code(1).expect_error(REFUSED).expect_text(&tags("policymaker"));
    assert!(vhost.names("policies").is_empty());
    if Node::shared().at_least(4, 0) {
        topo.rewrite("version: 1\nvhost: {name: \"{vhost}\", description: shop}\n");
        topo.run(["plan"]).expect_code(0).expect_text("cannot change the vhost").expect_text(&tags("administrator"));
    }
    // Only administrators can read permissions.
    let user = Node::shared().user("policymaker");
    let user = user.may(&vhost, "", "", "");
    let output = Topo::new(&vhost).user(&user).spec("queues: {q: {type: classic}}").run(["plan"]).expect_code(0);
    let unread = format!(
        "topo cannot read the permissions of user `{}` (this requires the administrator tag); the broker may still \
         refuse an apply",
        user.name
    );
    output.expect_text(&unread).expect_no_text("rabbitmqctl");
    let output = Topo::new(&vhost).user(&user).spec("queues: {}").run(["plan"]).expect_code(0);
    output.expect_text("No changes").expect_no_text("permissions");
}

#[test]
fn a_refused_policy_names_the_least_permissions() {
    let vhost = Node::shared().vhost("rights-policy");
    let everything = Node::shared().user("policymaker").may_everything(&vhost);
    let spec = "policies: {short: {pattern: '^q', applyTo: queues, definition: {max-length: 10}}}\n";
    let proxy = Proxy::to(Node::shared()).on(puts().path("/api/policies/"), Fault::Status(403));
    let output = Topo::new(&vhost).user(&everything).through(&proxy).spec(spec).run(["apply", "--yes"]).expect_code(1);
    let user = Node::shared().user("policymaker");
    let put = || {
        let body = json!({"pattern": "^q", "apply-to": "queues", "definition": {"max-length": 10}});
        user.http().put(&vhost.path("policies", &["short"]), &body)
    };
    assert!(!put().is_success());
    let command = format!("rabbitmqctl set_permissions -p {} {} '^$' '^$' '^$'", vhost.name(), everything.name);
    assert!(output.stderr.contains(&command), "{output}");
    let body = json!({"configure": "^$", "write": "^$", "read": "^$"});
    assert!(vhost.http().put(&vhost.path("permissions", &[&user.name]), &body).is_success());
    let answer = put();
    assert!(answer.is_success(), "{answer:?}");
}

#[test]
fn refused_binding_lists_its_minimal_permissions() {
    let vhost = Node::shared().vhost("rights-bind");
    let user = Node::shared().user("management").may(&vhost, ".*", "^dead$", "^orders");
    let output = Topo::new(&vhost).user(&user).spec(SPEC).run(["apply", "--yes"]).expect_code(4);
    let command = format!("rabbitmqctl set_permissions -p {} {}", vhost.name(), user.name);
    let of_dead = r"'CONFIGURE' '^orders\.mail$|WRITE' '^dead$|READ'";
    let of_orders = r"'CONFIGURE' '^orders\.work$|WRITE' '^orders$|READ'";
    let is_least = [of_dead, of_orders].iter().any(|least| output.stderr.contains(&format!("{command} {least}")));
    assert!(is_least, "{output}");
}
