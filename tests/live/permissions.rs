//! Tests permissions and topic permissions in a spec: topo sets, changes, deletes, prunes and exports them, lists the
//! objects that a user loses, and never locks itself out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scenarios::make_live;
use crate::support::random::cases;
use crate::support::topic_permissions::{permissions, restrict};
use crate::support::vhost::segment;
use crate::support::{NONE, Node, Proxy, Topo, User, Vhost, deletes, gets, until, writes};

const OBJECTS: &str = "exchanges: {orders: {type: topic}}\nqueues:\n  orders.work: {type: classic, bindings: \
                       [{exchange: orders, routingKey: 'order.#'}]}\n  orders.audit: {type: classic}\n";

/// Returns the three patterns of each user in the vhost, except the administrator of the tests.
fn live(vhost: &Vhost<'_>) -> BTreeMap<String, [String; 3]> {
    let listed = vhost.http().get(&format!("/api/vhosts/{}/permissions", segment(vhost.name()))).expect_status(200);
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    let of_users = listed.as_array().unwrap().iter().filter(|entry| entry["user"] != "guest");
    of_users
        .map(|entry| (text(entry, "user"), ["configure", "write", "read"].map(|field| text(entry, field))))
        .collect()
}

fn patterns(patterns: [&str; 3]) -> [String; 3] {
    patterns.map(str::to_owned)
}

fn no_changes(topo: &Topo) {
    topo.run(["plan", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
}

fn users<const N: usize>() -> [User<'static>; N] {
    [(); N].map(|()| Node::shared().user(""))
}

#[test]
fn permissions_are_set_changed_and_deleted() {
    let vhost = Node::shared().vhost("perm");
    let [app, reader] = users();
    let proxy = Proxy::to(Node::shared());
    let declared = |app_is: &str| format!("{OBJECTS}permissions:\n  {}: {app_is}\n  {}: all\n", app.name, reader.name);
    let topo = Topo::new(&vhost).through(&proxy).spec(&declared(r"{write: '^orders$', read: '^orders\.'}"));
    let plan = topo.run(["plan"]).expect_code(0).expect_text("Plan: 5 objects and 1 binding to create");
    plan.expect_text(r"write ^orders$ · read ^orders\.").expect_no_text("access-loss");
    // Permissions follow all other objects.
    topo.run(["apply", "-y"]).expect_code(0).expect_text("6/6 put permission").expect_text("5/6 put permission");
    let first = patterns(["^$", "^orders$", r"^orders\."]);
    assert_eq!(live(&vhost), [(app.name.clone(), first), (reader.name.clone(), patterns([".*"; 3]))].into());
    no_changes(&topo);
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(proxy.count(&writes()), written, "a second apply writes nothing");
    // The broker stores the empty pattern, which matches the same objects as `^$`.
    vhost.http().put(
        &vhost.path("permissions", &[&app.name]),
        &json!({"configure": "", "write": "^orders$", "read": r"^orders\."}),
    );
    no_changes(&topo);
    topo.rewrite(&declared(r"{configure: '^orders', write: '^orders$', read: '^orders\.'}"));
    let gain = "gains configure on orders, orders.audit, orders.work (3 of 3 objects)";
    topo.run(["plan"]).expect_code(0).expect_text(gain).expect_text("Plan: 1 object to change");
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(live(&vhost)[&app.name], patterns(["^orders", "^orders$", r"^orders\."]));
    // A pattern that matches the same objects is not a hazard.
    topo.rewrite(&declared(r"{configure: '^ord', write: '^orders$', read: '^orders\.'}"));
    topo.run(["apply", "-y"]).expect_code(0).expect_no_text("access-loss").expect_no_text("gains");
    topo.rewrite(&declared(r"{write: '^orders$', read: '^orders\.audit'}"));
    let loss =
        "loses configure on orders, orders.audit, orders.work (3 of 3 objects); read on orders.work (1 of 2 objects)";
    topo.run(["apply", "-y"]).expect_code(3).expect_text(&format!("user {} {loss}", app.name));
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0);
    no_changes(&topo);
    topo.rewrite(&format!("{OBJECTS}removed: {{permissions: [{}]}}\n", app.name));
    let deleted = format!("user {} loses access to the vhost: write on orders (1 of 1 object); read on", app.name);
    topo.run(["apply", "-y"]).expect_code(3).expect_text(&deleted);
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0).expect_text("1/1 delete permission");
    assert_eq!(live(&vhost), [(reader.name.clone(), patterns([".*"; 3]))].into());
    no_changes(&topo);
}

#[test]
fn permissions_are_written_after_objects_and_deleted_before_objects() {
    let vhost = Node::shared().vhost("perm-order");
    let [old, new] = users();
    make_live(&vhost, &json!({"queues": [{"name": "own.q", "arguments": {"x-queue-type": "classic"}}]}));
    let old = old.may_everything(&vhost);
    restrict(&vhost, &old.name, "amq.topic", "^a");
    let cluster = format!("version: 1\ncluster: {{}}\nowns: [{}]\n---\n", old.name);
    let spec = format!(
        "{cluster}version: 1\nvhost: \"{{vhost}}\"\nowns: [own.*]\nqueues: {{other: {{type: classic}}}}\npermissions: {{{n}: \
         all}}\ntopicPermissions: {{{n}: {{amq.topic: {{write: '^n', read: '.*'}}}}}}\n",
        n = new.name
    );
    let topo = super::cluster::topo(&vhost).spec(&spec);
    let words = ["--prune", "--prune=permissions,topicPermissions"];
    let plan = topo.run(["plan", "-v"].into_iter().chain(words)).expect_code(0).stdout;
    let requests = |method: &str| plan.lines().filter(move |line| line.contains(method)).collect::<Vec<_>>().join("\n");
    let place = |text: &str| plan.find(text).unwrap_or_else(|| panic!("no {text}: {plan}"));
    let v = vhost.name();
    let order = [
        format!("PUT /api/queues/{v}/other"),
        format!("PUT /api/topic-permissions/{v}/{}", new.name),
        format!("PUT /api/permissions/{v}/{}", new.name),
        format!("DELETE /api/permissions/{v}/{}", old.name),
        format!("DELETE /api/topic-permissions/{v}/{}/amq.topic", old.name),
        format!("DELETE /api/queues/{v}/own.q"),
    ];
    assert!(order.is_sorted_by_key(|text| place(text)), "{order:?}: {}\n{}", requests("PUT"), requests("DELETE"));
    // The user loses the permission, so no user gains access.
    topo.run(["apply", "-y"].into_iter().chain(words)).expect_code(3).expect_no_text("access-gain");
    let allowed = ["--allow=access-loss,mass-delete,message-loss"];
    topo.run(["apply", "-y"].into_iter().chain(words).chain(allowed)).expect_code(0).expect_text("Verified");
    assert_eq!(live(&vhost).into_keys().collect::<Vec<_>>(), [new.name.as_str()]);
    assert_eq!(vhost.names("queues"), ["other"]);
    topo.run(["plan", "--detailed-exitcode"].into_iter().chain(words)).expect_code(0);
}

/// topo must know its own user to detect that it would lock itself out.
#[test]
fn plan_fails_if_the_own_user_cannot_be_read() {
    let vhost = Node::shared().vhost("perm-whoami");
    let proxy = Proxy::to(Node::shared()).on(gets().path("/api/whoami"), crate::support::Fault::Status(500));
    let topo = Topo::new(&vhost).through(&proxy).spec("permissions: {guest: {}}\n");
    topo.run(["plan"]).expect_code(1).expect_text("/api/whoami");
    topo.rewrite("queues: {q: {type: classic}}\n");
    topo.run(["plan"]).expect_code(0).expect_text("queue q");
}

/// The broker grants all permissions to the user that creates a vhost. The same plan must not remove them.
#[test]
fn new_vhost_keeps_the_permissions_of_its_creator() {
    let vhost = Vhost::to_come(Node::shared(), "perm-new");
    let own = Node::shared().user("administrator");
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).user(&own);
    topo.rewrite(&format!("permissions: {{{}: {{read: '^x'}}}}\n", own.name));
    let text = format!("user {}, which topo uses to connect, would lose permissions that topo requires", own.name);
    topo.run(["apply", "-y"]).expect_code(3).expect_text(&text);
    assert_eq!(proxy.count(&writes()), 0);
    topo.rewrite(&format!("permissions: {{{}: all}}\n", own.name));
    topo.run(["apply", "-y"]).expect_code(0).expect_text("Verified");
    no_changes(&topo);
}

/// A DELETE of a topic permission on the exchange "" deletes all topic permissions of the user.
#[test]
fn topic_permission_without_an_exchange_is_not_deleted() {
    let vhost = Node::shared().vhost("perm-default");
    let app = Node::shared().user("").may_everything(&vhost);
    restrict(&vhost, &app.name, "amq.topic", "^a");
    restrict(&vhost, &app.name, "", "^b");
    let before = permissions(&vhost);
    assert_eq!(before.len(), 2);
    let spec = format!(
        "version: 1\ncluster: {{}}\nowns: [{0}]\n---\nversion: 1\nvhost: \"{{vhost}}\"\ntopicPermissions: {{{0}: {{amq.topic: \
         {{write: '^a', read: '.*'}}}}}}\n",
        app.name
    );
    let topo = super::cluster::topo(&vhost).spec(&spec);
    let output = topo.run(["apply", "-y", "--prune=topicPermissions"]).expect_code(0);
    output.expect_text("cannot be deleted over HTTP").expect_text("delete it with rabbitmqctl");
    assert_eq!(permissions(&vhost), before);
}

/// The objects that topo lists are those for which the broker refuses an operation.
#[test]
fn lost_objects_match_the_refusals_of_the_broker() {
    let vhost = Node::shared().vhost("perm-lost");
    let user = Node::shared().user("management");
    let names = ["t", "t.a", "ta", "t b", "t/c", "té", "t%", "t*", "t.work"];
    let amqp = vhost.amqp();
    for name in names {
        amqp.declare_queue(name, NONE).unwrap();
        amqp.declare_exchange(name, "fanout", NONE).unwrap();
    }
    let all = [
        "t",
        "^t$",
        r"^t\.",
        "a",
        "^t.a$",
        "t.*",
        "[ab]",
        "(a|b)",
        r"^t(\.|$)",
        r"\.work$",
        "^T",
        "(?i)^T",
        "^t.{1,2}$",
        r"\.",
        "^t%$",
        r"^t\*$",
        "é",
        "^$",
        "",
        r"^t[^.]*$",
    ];
    let seed = crate::support::seed() as usize;
    let chosen = (0..cases(5, all.len())).map(|index| all[(seed % all.len() + index * 7) % all.len()]);
    let (mut refused_in_all, mut checked) = (0, 0);
    for pattern in chosen {
        let user = Node::shared().user("management").may(&vhost, "^t", "^t", "^t");
        let text = serde_json::to_string(pattern).unwrap();
        let spec = format!("permissions: {{{}: {{configure: {text}, write: {text}, read: {text}}}}}\n", user.name);
        let topo = Topo::new(&vhost).spec(&spec);
        let plan = topo.run(["plan", "--format", "json"]).expect_code(0).plan();
        let hazards = plan["vhosts"][0]["hazards"].as_array().unwrap();
        let predicted = hazards.first().map_or("", |hazard| hazard["text"].as_str().unwrap());
        topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0);
        let (http, path) = (user.http(), |kind: &str, name: &str| vhost.path(kind, &[name]));
        let queue = json!({"durable": true, "auto_delete": false, "arguments": {"x-queue-type": "classic"}});
        let get = json!({"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 0});
        let message = json!({"properties": {}, "routing_key": "", "payload": "", "payload_encoding": "string"});
        for right in ["configure", "write", "read"] {
            let is_refused = |name: &&&str| {
                if right == "write" && !name.is_ascii() {
                    // The management API of 4.0 and 4.3 responds with 500 to a refused message for such an exchange.
                    return user.amqp(&vhost).try_publish(name, "").is_err();
                }
                let answer = match right {
                    "configure" => http.put(&path("queues", name), &queue),
                    "write" => http.post(&(path("exchanges", name) + "/publish"), &message),
                    _ => http.post(&(path("queues", name) + "/get"), &get),
                };
                match answer.status {
                    200 | 201 | 204 => false,
                    400 | 401 if answer.body.to_string().to_lowercase().contains("refused") => true,
                    _ => panic!("{right} {name} {pattern}: {answer:?}"),
                }
            };
            let refused: Vec<&&str> = names.iter().filter(is_refused).collect();
            let listed = predicted.split(right).nth(1).and_then(|rest| rest.split(';').next()).unwrap_or_default();
            match refused.len() {
                0 if !listed.contains("at most") => assert_eq!(listed, "", "{right} {pattern}: {predicted}"),
                many if listed.contains("at most") => {
                    let number: usize =
                        listed.split_once("at most ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
                    assert!(many <= number, "{right} {pattern}: {many} refused, {predicted}");
                }
                many => {
                    assert!(
                        listed.contains(&format!("({many} of 9 objects)")),
                        "{right} {pattern}: {refused:?}, {predicted}"
                    );
                    let mut sorted = refused.clone();
                    sorted.sort();
                    let first: Vec<&str> = sorted.iter().take(3).map(|name| **name).collect();
                    assert!(listed.starts_with(&format!(" on {}", first.join(", "))), "{right} {pattern}: {listed}");
                }
            }
            refused_in_all += refused.len();
            checked += names.len();
        }
    }
    println!("{checked} operations, {refused_in_all} of them refused");
    assert!(refused_in_all > 0);
    drop(user);
}

#[test]
fn connections_that_keep_permissions_are_counted() {
    let vhost = Node::shared().vhost("perm-connected");
    let app = Node::shared().user("").may_everything(&vhost);
    let spec = format!("queues: {{q: {{type: classic}}}}\npermissions: {{{}: {{read: '.*'}}}}\n", app.name);
    let topo = Topo::new(&vhost).spec(&spec);
    topo.run(["plan"]).expect_code(0).expect_text("access-loss").expect_no_text("channels keep the old permissions");
    let connections = [app.amqp(&vhost), app.amqp(&vhost)];
    let listed = || vhost.http().get(&format!("/api/vhosts/{}/connections", segment(vhost.name())));
    until("both connections are listed", || (listed().expect_status(200).as_array()?.len() == 2).then_some(()));
    let plan = topo.run(["plan"]).expect_code(0);
    let plan = plan.expect_text(
        "2 open connections: their channels keep the old permissions until they have been idle for about 1 s",
    );
    if Node::shared().at_least(3, 10) {
        plan.expect_text(&format!("DELETE /api/connections/username/{}", app.name));
    }
    drop(connections);
}

#[test]
fn topo_does_not_lock_itself_out() {
    let vhost = Node::shared().vhost("perm-lock-out");
    let own = Node::shared().user("administrator").may_everything(&vhost);
    let other = Node::shared().user("administrator").may_everything(&vhost);
    let proxy = Proxy::to(Node::shared());
    let topo = Topo::new(&vhost).through(&proxy).user(&own);
    let name = &own.name;
    let removed =
        format!("user {name}, which topo uses to connect, would lose permissions that topo requires: configure on");
    let deleted = format!("the plan deletes the permissions of user {name}, which topo uses to connect");
    let cluster = format!("version: 1\ncluster: {{}}\nowns: [{name}]\n---\nversion: 1\nvhost: \"{{vhost}}\"\n");
    let topics = format!(
        "the topic permission of user {name}, which topo uses to connect, does not permit the binding events ─ b → q in this plan"
    );
    for (spec, blocked) in [
        (
            format!(
                "exchanges: {{events: {{type: topic}}}}\nqueues: {{q: {{type: classic, bindings: [{{exchange: events, \
                 routingKey: b}}]}}}}\ntopicPermissions: {{{name}: {{events: {{write: '.*', read: '^a'}}}}}}\n"
            ),
            topics,
        ),
        // topo cannot evaluate this pattern.
        (
            format!("permissions: {{{name}: {{configure: '(?1)(.*)', write: '.*', read: '.*'}}}}\n"),
            format!("{removed} topo.lock"),
        ),
        (format!("permissions: {{{name}: {{}}}}\n"), format!("{removed} topo.lock")),
        (
            format!(
                "permissions: {{{name}: {{configure: '^topo', write: '.*', read: '.*'}}}}\nqueues: {{q: {{type: classic}}}}\n"
            ),
            format!("{removed} q"),
        ),
        (format!("removed: {{permissions: [{name}]}}\n"), deleted),
    ] {
        topo.rewrite(&spec);
        let words = ["apply", "-y", "--prune=permissions", "--allow=access-loss,mass-delete"];
        let output = topo.run(words).expect_code(3).expect_text(&blocked);
        output.expect_text("apply the plan as a different administrator");
    }
    // topo does not prune its own permissions.
    topo.rewrite(&format!("{cluster}permissions: {{}}\n"));
    topo.run(["plan", "--prune=permissions"]).expect_code(0).expect_text("No changes").expect_no_text(name);
    // The lock can have another name.
    topo.rewrite(&format!("permissions: {{{name}: {{configure: '^ci', write: '.*', read: '.*'}}}}\n"));
    topo.run(["plan"]).expect_code(0).expect_text(&format!("{removed} topo.lock"));
    topo.run(["apply", "-y", "--dry-run", "--lock-name=ci.lock", "--allow=access-loss"])
        .expect_code(0)
        .expect_no_text(&removed);
    topo.run(["apply", "-y", "--lock-name=other", "--allow=access-loss"])
        .expect_code(3)
        .expect_text(&format!("{removed} other"));
    assert_eq!(proxy.count(&writes()), 0);
    assert_eq!(live(&vhost)[name], patterns([".*"; 3]));
    // A permission that topo does not require, and a permission of a different user, can be deleted.
    topo.rewrite(&format!("permissions: {{{name}: {{configure: '.*', write: '^$', read: '.*'}}}}\n"));
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0);
    assert_eq!(live(&vhost)[name], patterns([".*", "^$", ".*"]));
    topo.rewrite(&format!("removed: {{permissions: [{}]}}\n", other.name));
    topo.run(["apply", "-y", "--allow=access-loss,mass-delete"]).expect_code(0);
    assert!(!live(&vhost).contains_key(&other.name));
}

#[test]
fn missing_users_block_the_plan() {
    let vhost = Node::shared().vhost("perm-missing");
    let proxy = Proxy::to(Node::shared());
    let spec = "exchanges: {e: {type: topic}}\npermissions: {unknown-user: all}\ntopicPermissions: {unknown-user: {e: {write: a, \
                read: b}}}\n";
    let topo = Topo::new(&vhost).through(&proxy).spec(spec);
    let blocked = topo.run(["apply", "-y"]).expect_code(3).expect_text("user `unknown-user` does not exist");
    let blocked = blocked.expect_text("BLOCKED by 1 blocker");
    blocked.expect_text("→ create it first: rabbitmqctl add_user unknown-user");
    // Permissions and topic permissions need the same list of users.
    assert_eq!(proxy.count(&gets().path("/api/users")), 1);
    assert_eq!(proxy.count(&writes()), 0);
}

#[test]
fn users_without_rights_cannot_compare_permissions() {
    let vhost = Node::shared().vhost("perm-rights");
    let app = Node::shared().user("");
    let manager = Node::shared().user("monitoring").may_everything(&vhost);
    let (proxy, spec) = (Proxy::to(Node::shared()), format!("permissions: {{{}: all}}\n", app.name));
    let topo = Topo::new(&vhost).through(&proxy).user(&manager).spec(&spec);
    let text = "1 permission cannot be compared: reading permissions requires the administrator tag";
    let plan = topo.run(["plan", "--detailed-exitcode"]).expect_code(3).expect_text(text);
    plan.expect_text("connect as a user with the administrator tag");
    topo.run(["apply", "-y"]).expect_code(3).expect_text(text);
    assert_eq!(proxy.count(&writes()), 0);
    topo.rewrite("permissions: {}\n");
    topo.run(["plan"])
        .expect_code(0)
        .expect_text("permissions are not compared: reading them requires the administrator tag");
    let export = topo.run(["export", "--vhost", "{vhost}", "--with=permissions"]).expect_code(0);
    assert!(
        export.stderr.contains("permissions are not exported: reading them requires the administrator tag"),
        "{export}"
    );
    // A spec without permissions requires no further right and no further request.
    topo.rewrite("queues: {q: {type: classic}}\n");
    topo.run(["apply", "-y"]).expect_code(0);
    proxy.reset();
    no_changes(&topo);
    assert_eq!(proxy.count(&gets().path("permissions")), 0);
}

#[test]
fn owns_of_the_cluster_document_selects_permissions_to_prune() {
    let vhost = Node::shared().vhost("perm-prune");
    let [own, unmanaged] = users().map(|user: User<'static>| user.may_everything(&vhost));
    let topo = super::cluster::topo(&vhost);
    let spec = |cluster: &str| {
        format!(
            "version: 1\ncluster: {{}}\n{cluster}---\nversion: 1\nvhost: \"{{vhost}}\"\nowns: [\"*\"]\npermissions: {{}}\n"
        )
    };
    // The globs of the vhost's document do not match users.
    topo.rewrite(&spec(""));
    topo.run(["plan", "--prune=permissions"]).expect_code(0).expect_text("No changes");
    topo.rewrite(&spec(&format!("owns: [{}]\n", own.name)));
    let listed = format!("permission {}  (--prune=permissions)", own.name);
    topo.run(["plan"]).expect_code(0).expect_text(&listed).expect_no_text(&unmanaged.name);
    topo.run(["apply", "-y", "--prune"]).expect_code(0);
    assert_eq!(live(&vhost).len(), 2);
    topo.rewrite(&spec(&format!("owns: [{0}]\nprotect: [{0}]\n", own.name)));
    topo.run(["plan", "--prune=permissions"]).expect_code(0).expect_text("but protected: topo keeps it");
    topo.rewrite(&spec(&format!("owns: [{0}]\nignore: [{0}]\n", own.name)));
    topo.run(["plan", "--prune=permissions"]).expect_code(0).expect_text("No changes").expect_no_text(&own.name);
    if Node::shared().is_at_least_patch(3, 8, 10) {
        // The cluster document also manages the users that it declares.
        topo.rewrite(&spec(&format!("users: {{{}: {{limits: {{}}}}}}\n", own.name)));
        topo.run(["plan"]).expect_code(0).expect_text(&listed);
    }
    topo.rewrite(&spec(&format!("owns: [{}]\n", own.name)));
    topo.run(["apply", "-y", "--prune=permissions", "--allow=access-loss,mass-delete"]).expect_code(0);
    assert_eq!(live(&vhost).into_keys().collect::<Vec<_>>(), [unmanaged.name.as_str()]);
}

#[test]
fn topic_permissions_are_set_changed_and_deleted() {
    let vhost = Node::shared().vhost("perm-topic");
    let app = Node::shared().user("").may_everything(&vhost);
    let proxy = Proxy::to(Node::shared());
    let declared = |rest: &str| format!("{OBJECTS}topicPermissions:\n  {}: {{{rest}}}\n", app.name);
    let topo = Topo::new(&vhost)
        .through(&proxy)
        .spec(&declared("orders: {write: '^a', read: ''}, amq.topic: {write: '^b', read: '.*'}"));
    let plan = topo.run(["plan"]).expect_code(0).expect_text("Plan: 5 objects and 1 binding to create");
    // The exchange `orders` does not exist yet, so the user loses nothing there.
    let plan = plan.expect_text("write ^a · read ^$").expect_no_text("publish to exchange orders");
    plan.expect_text("may publish to exchange amq.topic only with routing keys that match `^b`, and bind only");
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0);
    let of = |exchange: &str, write: &str| format!("{}: {write} on {exchange}", app.name);
    assert_eq!(permissions(&vhost), [of("orders", "^a"), of("amq.topic", "^b")]);
    no_changes(&topo);
    let written = proxy.count(&writes());
    topo.run(["apply", "-y"]).expect_code(0);
    assert_eq!(proxy.count(&writes()), written);
    topo.rewrite(&declared("orders: {write: '^a\\.', read: ''}, amq.topic: {write: '^b', read: '.*'}"));
    let text = "may publish to exchange orders only with routing keys that match `^a\\.`";
    topo.run(["apply", "-y"]).expect_code(3).expect_text(text).expect_no_text("channels keep");
    topo.run(["apply", "-y", "--allow=access-loss"]).expect_code(0);
    let connection = app.amqp(&vhost);
    let listed = || vhost.http().get(&format!("/api/vhosts/{}/connections", segment(vhost.name())));
    until("the connection is listed", || (listed().expect_status(200).as_array()?.len() == 1).then_some(()));
    topo.rewrite(&declared("orders: {write: '^a\\.b', read: ''}, amq.topic: {write: '.*', read: '.*'}"));
    let blocked = topo.run(["apply", "-y"]).expect_code(3);
    let blocked = blocked.expect_text("may publish to exchange orders only with routing keys that match");
    let blocked = blocked.expect_text("1 open connection: its channels keep the old permissions");
    blocked.expect_text("may publish with any routing key on exchange amq.topic");
    topo.run(["apply", "-y", "--allow=access-loss,access-gain"]).expect_code(0).expect_text("Verified");
    drop(connection);
    no_changes(&topo);
    // A topic permission for every routing key is equivalent to none.
    assert!(vhost.http().delete(&vhost.path("topic-permissions", &[&app.name, "amq.topic"])).is_success());
    no_changes(&topo);
    assert_eq!(permissions(&vhost), [of("orders", "^a\\.b")]);
    // A topic permission that the spec does not declare is deleted alone.
    restrict(&vhost, &app.name, "amq.topic", "^x");
    let cluster = format!("version: 1\ncluster: {{}}\nowns: [{}]\n---\nversion: 1\nvhost: \"{{vhost}}\"\n", app.name);
    topo.rewrite(&(cluster + &declared("orders: {write: '^a\\.b', read: ''}")));
    let topo = topo.env("TOPO_LOCK_VHOST", vhost.name());
    let deleted =
        topo.run(["apply", "-y", "--prune=topicPermissions", "--allow=access-gain,mass-delete"]).expect_code(0);
    deleted.expect_text(&format!("delete topic permission {} amq.topic", app.name));
    assert_eq!(proxy.count(&deletes().path("topic-permissions")), 1);
    assert_eq!(permissions(&vhost), [of("orders", "^a\\.b")]);
}

#[test]
fn permissions_are_exported_on_request() {
    let vhost = Node::shared().vhost("perm-export");
    let [app, viewer] = users();
    let (app, viewer) = (app.may(&vhost, "", "^a$", "it's \"é\" b"), viewer.may_everything(&vhost));
    restrict(&vhost, &app.name, "amq.topic", "^a b");
    make_live(&vhost, &json!({"queues": [{"name": "q", "arguments": {"x-queue-type": "classic"}}]}));
    let topo = Topo::new(&vhost).spec("");
    let export = topo.run(["export", "--vhost", "{vhost}"]).expect_code(0);
    assert!(export.stderr.contains("not in the spec: 3 permissions"), "{export}");
    let export = topo.run(["export", "--vhost", "{vhost}", "--with=permissions,topicPermissions"]).expect_code(0);
    assert!(export.stderr.contains("3 permissions, 1 topic permission"), "{export}");
    assert!(!export.stderr.contains("not in the spec"), "{export}");
    assert!(export.stdout.contains(&format!("  {}: all\n", viewer.name)), "{export}");
    topo.write("topology.yaml", &export.stdout);
    no_changes(&topo);
    // A definitions file contains the same permissions.
    let all = Node::shared().http().list("/api/definitions");
    let topo = topo.file("definitions.json", &all.to_string());
    topo.run(["plan", "--against=definitions.json", "--detailed-exitcode"]).expect_code(0).expect_text("No changes");
    let words =
        ["export", "--definitions=definitions.json", "--vhost", "{vhost}", "--with=permissions,topicPermissions"];
    assert_eq!(topo.run(words).expect_code(0).stdout, export.stdout);
    let left_out = topo.run(["export", "--definitions=definitions.json", "--vhost", "{vhost}"]).expect_code(0);
    assert!(left_out.stderr.contains("3 permissions") && left_out.stderr.contains("1 topic permission"), "{left_out}");
}

#[test]
fn backups_contain_changed_permissions() {
    let vhost = Node::shared().vhost("perm-backup");
    let app = Node::shared().user("").may(&vhost, "a", "b", "c");
    restrict(&vhost, &app.name, "amq.topic", "^a");
    let spec = format!(
        "permissions: {{{0}: {{read: c}}}}\ntopicPermissions: {{{0}: {{amq.topic: {{write: '.*', read: '.*'}}}}}}\n",
        app.name
    );
    let topo = Topo::new(&vhost).spec(&spec);
    topo.run(["apply", "-y", "--allow=access-loss,access-gain", "--backup=b.json"]).expect_code(0);
    assert!(permissions(&vhost) != [format!("{}: ^a on amq.topic", app.name)]);
    let files: &[&str] =
        if Node::shared().at_least(4, 3) { &["b.json"] } else { &["b.json", "b.topic-permissions.json"] };
    for file in files {
        let import: Value = serde_json::from_str(&topo.read(file)).unwrap();
        assert!(vhost.http().post("/api/definitions", &import).is_success(), "{import:#}");
    }
    assert_eq!(live(&vhost)[&app.name], patterns(["a", "b", "c"]));
    assert_eq!(permissions(&vhost), [format!("{}: ^a on amq.topic", app.name)]);
}

#[test]
fn killed_apply_keeps_permissions_and_the_next_apply_completes() {
    let vhost = Node::shared().vhost("perm-killed");
    let [existing, new] = users();
    let existing = existing.may(&vhost, "", "^orders$", "^orders\\.");
    let spec = format!(
        "{OBJECTS}permissions:\n  {}: {{write: '^orders$', read: '^orders\\.'}}\n  {}: all\n",
        existing.name, new.name
    );
    for nth in 1..=6 {
        let proxy = Proxy::to(Node::shared());
        proxy.add(writes().nth(nth), crate::support::Fault::HangBefore);
        let topo = Topo::new(&vhost).through(&proxy).spec(&spec);
        let mut running = topo.start(["apply", "-y"]);
        until("the request hangs", || (proxy.hangs() || running.is_over()).then_some(()));
        assert!(proxy.hangs(), "the run ended before its write {nth}: {}", running.printed());
        running.signal("KILL");
        running.wait();
        proxy.wait_until_idle();
        let lock = vhost.http().delete(&vhost.path("queues", &["topo.lock"]));
        assert!(matches!(lock.status, 204 | 404));
        assert_eq!(live(&vhost)[&existing.name], patterns(["", "^orders$", "^orders\\."]));
        let topo = Topo::new(&vhost).spec(&spec);
        topo.run(["apply", "-y"]).expect_code(0);
        no_changes(&topo);
        for kind in ["queues/orders.work", "queues/orders.audit", "exchanges/orders"] {
            let (kind, name) = kind.split_once('/').unwrap();
            assert!(vhost.http().delete(&vhost.path(kind, &[name])).is_success());
        }
        assert!(vhost.http().delete(&vhost.path("permissions", &[&new.name])).is_success());
    }
}
