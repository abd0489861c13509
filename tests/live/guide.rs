//! Runs the documentation pages from top to bottom. Each command must print the text below it, and pipeline steps run
//! as on a runner. Comments describe events on the broker between the commands:
//!
//! - `<!-- live: publish 5 to orders with order.created in store -->`
//! - `<!-- live: hold 1 of orders.work in store -->`: a consumer receives a message and acknowledges it only at
//!   `release`
//! - `<!-- live: killed at "move messages": topo apply --yes -->`: runs the command, and kills it when it prints this
//!   text
//! - `<!-- live: subscribe to orders.work in store -->`: an idle consumer, until `release`
//! - `<!-- live: list 5 of orders.work in store -->`: the statistics contain this number of messages
//! - `<!-- live: fail 5 of orders.work in store -->`: a worker rejects messages
//! - `<!-- live: locked by deploy-42 in store -->`
//! - `<!-- live: bind audit to events.work with event.created in store -->`: declares exchange `audit` and an unmanaged
//!   binding
//! - `<!-- live: grant guest all permissions in store -->`
//! - `<!-- live: a minute in store -->`: the lock of a killed apply expires
//!
//! The comment above a `mermaid` block contains the command that prints the block:
//! `<!-- picture: topo graph topology.yaml -->`.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::support::amqp::Held;
use crate::support::page::{expect_file, file_name, root, screenshot};
use crate::support::vhost::segment;
use crate::support::{Amqp, Node, Page, Part, Shell, User, Vhost, until};

/// A page with its vhosts and users, which are deleted when the value is dropped.
struct PageRun<'node> {
    shell: Shell<'node>,
    vhosts: Vec<Vhost<'node>>,
    held: Option<(Held, Amqp)>,
    _users: Vec<User<'node>>,
}

/// The lock of a cluster document is in the vhost `/`, so only one page with such documents runs at a time.
static CLUSTER: Mutex<()> = Mutex::new(());

fn check_page(page: &str, vhosts: &[&str], users: &[&str]) {
    let node = Node::shared();
    let page = Page::read(&format!("docs/{page}.md"));
    let has_cluster = page.blocks("yaml").iter().any(|block| block.contains("cluster:"));
    let _alone = has_cluster.then(|| CLUSTER.lock().unwrap_or_else(PoisonError::into_inner));
    let mut page_run = PageRun {
        shell: Shell::new(node),
        vhosts: vhosts.iter().map(|name| Vhost::to_come(node, name)).collect(),
        held: None,
        _users: users.iter().map(|name| User::to_come(node, name)).collect(),
    };
    for files in ["examples", "docs/how-to/existing.json", "docs/how-to/state.json", "docs/how-to/manifests.yaml"] {
        let copied = Command::new("cp").arg("-r").arg(root().join(files)).arg(page_run.shell.folder()).status();
        assert!(copied.is_ok_and(|status| status.success()), "{files}");
    }
    let mut graph_command = None;
    let updated = page.rewritten(|part| match part {
        Part::Line(line) => {
            let live = line.strip_prefix("<!-- live: ").map(|line| line.trim_end().strip_suffix(" -->").unwrap());
            if let Some(live) = live {
                page_run.happens(live);
            }
            let drawn = line.strip_prefix("<!-- picture: ").map(|line| line.trim_end().strip_suffix(" -->").unwrap());
            graph_command = drawn.map(str::to_owned).or(graph_command.take());
            None
        }
        Part::Fence(_) => None,
        Part::Block { language: "mermaid", .. } => {
            Some(page_run.shell.run(&graph_command.take().expect("a comment with the command is above the graph")))
        }
        Part::Block { language: "console", text } => Some(page_run.shell.session(text)),
        Part::Block { language, text } => {
            if let Some(name) = file_name(text) {
                page_run.shell.write(name, text);
                // A file name that begins with a dot is a pipeline, not a spec.
                if language == "yaml" && name.starts_with('.') {
                    steps(text).iter().for_each(|step| page_run.shell.step(step));
                }
            }
            None
        }
    });
    page.expect(&updated);
}

impl<'node> PageRun<'node> {
    fn vhost(&self, name: &str) -> &Vhost<'node> {
        self.vhosts.iter().find(|vhost| vhost.name() == name).unwrap_or_else(|| panic!("a vhost of the page: {name}"))
    }

    fn happens(&mut self, what: &str) {
        if let Some((text, command)) = what.strip_prefix("killed at \"").and_then(|it| it.split_once("\": ")) {
            return self.shell.killed_at(text, command);
        }
        match what.split(' ').collect::<Vec<_>>()[..] {
            ["publish", messages, "to", exchange, "with", key, "in", vhost] => {
                let amqp = self.vhost(vhost).amqp();
                for number in 1..=messages.parse::<usize>().unwrap() {
                    amqp.publish(exchange, key, &number.to_string());
                }
            }
            ["hold", messages, "of", queue, "in", vhost] => {
                let amqp = self.vhost(vhost).amqp();
                let held = amqp.hold(queue, messages.parse().unwrap());
                self.held = Some((held, amqp));
            }
            ["subscribe", "to", queue, "in", vhost] => {
                let amqp = self.vhost(vhost).amqp();
                self.held = Some((amqp.hold(queue, 0), amqp));
                let vhost = self.vhost(vhost);
                until("the consumer to be listed", || (vhost.listed_consumers(queue) == 1).then_some(()));
            }
            ["fail", messages, "of", queue, "in", vhost] => {
                let messages = messages.parse().unwrap();
                assert_eq!(self.vhost(vhost).amqp().reject(queue, messages), messages);
            }
            ["list", messages, "of", queue, "in", vhost] => {
                let (vhost, messages) = (self.vhost(vhost), messages.parse::<u64>().unwrap());
                // The list that `topo status` reads. Without statistics of the queue, it contains neither samples nor
                // consumers. The node collects them separately, so one of them can be in the list before the other (4.3.6).
                let path = format!("/api/queues/{}?lengths_age=300&lengths_incr=5", segment(vhost.name()));
                until("the messages to be in the statistics", || {
                    let listed = vhost.http().get(&path).expect_status(200);
                    let listed = listed.as_array().unwrap().iter().find(|listed| listed["name"] == *queue)?;
                    let samples = listed["messages_details"]["samples"].as_array().map_or(0, Vec::len);
                    (listed["messages"] == messages && samples > 1 && listed["consumers"].is_u64()).then_some(())
                });
            }
            ["release"] => self.held = None,
            ["bind", exchange, "to", queue, "with", key, "in", vhost] => {
                let vhost = self.vhost(vhost);
                let declared = json!({"type": "topic", "durable": true});
                vhost.http().put(&vhost.path("exchanges", &[exchange]), &declared).expect_status(201);
                let path = format!("/api/bindings/{}/e/{exchange}/q/{queue}", vhost.name());
                vhost.http().post(&path, &json!({"routing_key": key, "arguments": {}})).expect_status(201);
            }
            ["locked", "by", holder, "in", vhost] => {
                let arguments =
                    json!({"x-queue-type": "classic", "x-topo-holder": holder, "x-topo-token": "another's"});
                let vhost = self.vhost(vhost);
                let lock = json!({"durable": true, "arguments": arguments});
                vhost.http().put(&vhost.path("queues", &["topo.lock"]), &lock).expect_status(201);
            }
            ["grant", user, "all", "permissions", "in", vhost] => {
                let permissions = json!({"configure": ".*", "write": ".*", "read": ".*"});
                let vhost = self.vhost(vhost);
                vhost.http().put(&vhost.path("permissions", &[user]), &permissions).expect_status(201);
            }
            ["a", "minute", "in", vhost] => {
                let vhost = self.vhost(vhost);
                vhost.http().delete(&vhost.path("queues", &["topo.lock"])).expect_status(204);
            }
            _ => panic!("unknown event: {what}"),
        }
    }
}

/// Returns the commands of a pipeline in order: `run` of GitHub, `script` of GitLab, `entry` of pre-commit.
fn steps(pipeline: &str) -> Vec<String> {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(keys) => {
                for (key, value) in keys {
                    if ["run", "script", "before_script", "entry"].contains(&key.as_str()) {
                        let lines = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                        found.extend(lines.iter().map(|line| line.as_str().unwrap().to_owned()));
                    } else {
                        walk(value, found);
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    walk(&serde_yaml::from_str(pipeline).unwrap(), &mut found);
    assert!(!found.is_empty(), "a pipeline with no step: {pipeline}");
    found
}

/// The pages with commands, by path.
pub(crate) const PAGES: [&str; 22] = [
    "tutorials/first-plan",
    "tutorials/reading-a-plan",
    "how-to/adopting",
    "how-to/changing-a-live-queue",
    "how-to/pipelines",
    "how-to/troubleshooting",
    "how-to/workers",
    "explanation/never",
    "explanation/retries",
    "how-to/limits",
    "how-to/user-limits",
    "how-to/status",
    "how-to/alerts",
    "how-to/dead-letters",
    "how-to/testing",
    "how-to/global-parameters",
    "how-to/permissions",
    "how-to/super-streams",
    "how-to/users",
    "how-to/environments",
    "how-to/shovels",
    "how-to/moving",
];

#[test]
fn status_commands_print_the_shown_output() {
    check_page(PAGES[11], &["harbor"], &[]);
}

#[test]
fn first_plan_commands_print_the_shown_output() {
    check_page(PAGES[0], &["shop"], &[]);
}

#[test]
fn reading_a_plan_commands_print_the_shown_output() {
    check_page(PAGES[1], &["eventhorizon"], &[]);
}

#[test]
fn adopting_commands_print_the_shown_output() {
    // On other versions, a plan on this page has different bindings or an additional hazard, as the page states.
    if !Node::shared().at_least(3, 10) || Node::shared().at_least(4, 0) {
        return;
    }
    check_page(PAGES[2], &["store", "workshop"], &[]);
}

#[test]
fn changing_a_live_queue_commands_print_the_shown_output() {
    check_page(PAGES[3], &["depot"], &[]);
}

#[test]
fn pipelines_commands_print_the_shown_output() {
    check_page(PAGES[4], &["market"], &["topo-plan", "topo-apply"]);
}

#[test]
fn troubleshooting_commands_print_the_shown_output() {
    check_page(PAGES[5], &["bazaar"], &[]);
}

#[test]
fn workers_commands_print_the_shown_output() {
    check_page(PAGES[6], &[], &[]);
}

#[test]
fn never_commands_print_the_shown_output() {
    check_page(PAGES[7], &[], &[]);
}

#[test]
fn retries_commands_print_the_shown_output() {
    check_page(PAGES[8], &[], &[]);
}

#[test]
fn limits_commands_print_the_shown_output() {
    check_page(PAGES[9], &["tenant"], &[]);
}

#[test]
fn user_limits_commands_print_the_shown_output() {
    // RabbitMQ 3.8.10 adds user limits.
    if Node::shared().is_at_least_patch(3, 8, 10) {
        check_page(PAGES[10], &[], &["shop-app", "shop-reports"]);
    }
}

#[test]
fn global_parameters_commands_print_the_shown_output() {
    check_page(PAGES[15], &[], &[]);
    for name in ["shop_contact", "shop_release"] {
        Node::shared().http().delete(&format!("/api/global-parameters/{name}")).expect_status(204);
    }
}

#[test]
fn super_streams_commands_print_the_shown_output() {
    if Node::shared().at_least(3, 9) {
        check_page(PAGES[17], &["foundry"], &[]);
    }
}

#[test]
fn permissions_commands_print_the_shown_output() {
    check_page(PAGES[16], &["gallery"], &["gallery-app", "gallery-reports"]);
}

#[test]
fn alerts_commands_print_the_shown_output() {
    check_page(PAGES[12], &[], &[]);
}

#[test]
fn dead_letters_commands_print_the_shown_output() {
    // A peek shows headers that depend on the version.
    if !Node::shared().at_least(3, 10) || Node::shared().at_least(4, 0) {
        return;
    }
    check_page(PAGES[13], &["kiosk"], &[]);
}

/// Checks the image of a plan in the README. On other versions, the ladder has different objects.
#[test]
fn image_of_a_plan_is_current() {
    let node = Node::shared();
    if !node.at_least(3, 10) || node.at_least(4, 0) {
        return;
    }
    let vhost = Vhost::to_come(node, "parcels");
    let shell = Shell::new(node);
    let spec = |ttl: &str, most: &str, more: &str| {
        format!(
            "version: 1\nvhost: parcels\nexchanges:\n  orders: {{type: topic}}\nqueues:\n  orders.work:\n    type: classic\n    \
             messageTtl: {ttl}\n    deadLetter: orders.dead\n    bindings: [{{exchange: orders, routingKey: 'order.#'}}]\n{more}\
             deadLetterQueues:\n  orders.dead: {{type: classic}}\npolicies:\n  orders-limits:\n    pattern: '^orders\\.work$'\n    \
             applyTo: queues\n    definition: {{maxLength: {most}}}\n"
        )
    };
    shell.write("topology.yaml", &spec("1h", "10000", ""));
    shell.run("topo apply --yes");
    let amqp = vhost.amqp();
    for number in 1..=240 {
        amqp.publish("orders", "order.created", &number.to_string());
    }
    let mail = "  orders.mail:\n    type: quorum\n    retry: {delays: [30s, 5m]}\n    deadLetter: orders.dead\n    \
                bindings: [{exchange: orders, routingKey: order.created}]\n";
    shell.write("topology.yaml", &spec("2h", "20000", mail));
    let output = shell.run("topo plan --color always");
    expect_file("docs/images/plan.svg", &screenshot("topo plan", &output));
}

#[test]
fn testing_commands_print_the_shown_output() {
    check_page(PAGES[14], &[], &[]);
}

#[test]
fn users_commands_print_the_shown_output() {
    check_page(PAGES[18], &["studio"], &["studio-app", "studio-reports", "studio-worker"]);
}

#[test]
fn environments_commands_print_the_shown_output() {
    check_page(PAGES[19], &[], &[]);
}

#[test]
fn moving_commands_print_the_shown_output() {
    check_page(PAGES[21], &[], &[]);
}

#[test]
fn shovels_commands_print_the_shown_output() {
    check_page(PAGES[20], &["wharf"], &[]);
}
