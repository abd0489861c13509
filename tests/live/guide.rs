//! The guide's pages, from top to bottom: every command is run, and what it prints is what stands below it; the steps of its
//! pipelines are run as a runner runs them. What is live beside a page's own commands stands in it, as a comment:
//!
//! - `<!-- live: publish 5 to orders with order.created in store -->`
//! - `<!-- live: hold 1 of orders.work in store -->`: a consumer has it and does not acknowledge it, until `release`
//! - `<!-- live: killed at "move messages": topo apply --yes -->`: that runs, and is killed when it says that
//! - `<!-- live: locked by deploy-42 in store -->`
//! - `<!-- live: guest may everything in store -->`, which others have created
//! - `<!-- live: a minute in store -->`: the lock of an apply that was killed has run out
//!
//! A `mermaid` block is what the command of the comment above it prints: `<!-- picture: topo graph topology.yaml -->`.

use std::fs;

use serde_json::{Value, json};

use crate::support::amqp::Held;
use crate::support::page::{file_name, root};
use crate::support::{Amqp, Node, Page, Part, Shell, User, Vhost};

/// A page, with the vhosts and users that it makes: they are gone afterwards.
struct Explanation<'node> {
    shell: Shell<'node>,
    vhosts: Vec<Vhost<'node>>,
    held: Option<(Held, Amqp)>,
    _users: Vec<User<'node>>,
}

fn is_true(page: &str, vhosts: &[&str], users: &[&str]) {
    let node = Node::shared();
    let mut story = Explanation {
        shell: Shell::new(node),
        vhosts: vhosts.iter().map(|name| Vhost::to_come(node, name)).collect(),
        held: None,
        _users: users.iter().map(|name| User::to_come(node, name)).collect(),
    };
    for entry in fs::read_dir(root().join("docs/guide")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "json") {
            fs::copy(&path, story.shell.folder().join(path.file_name().unwrap())).unwrap();
        }
    }
    let page = Page::read(&format!("docs/guide/{page}.md"));
    let mut picture = None;
    let updated = page.rewritten(|part| match part {
        Part::Line(line) => {
            let live = line.strip_prefix("<!-- live: ").map(|line| line.trim_end().strip_suffix(" -->").unwrap());
            if let Some(live) = live {
                story.comes_about(live);
            }
            let drawn = line.strip_prefix("<!-- picture: ").map(|line| line.trim_end().strip_suffix(" -->").unwrap());
            picture = drawn.map(str::to_owned).or(picture.take());
            None
        }
        Part::Fence(_) => None,
        Part::Block { language: "mermaid", .. } => {
            Some(story.shell.run(&picture.take().expect("the command of the picture stands above it")))
        }
        Part::Block { language: "console", text } => Some(story.shell.session(text)),
        Part::Block { language, text } => {
            if let Some(name) = file_name(text) {
                story.shell.write(name, text);
                // A pipeline, not a spec.
                if language == "yaml" && name.starts_with('.') {
                    steps(text).iter().for_each(|step| story.shell.step(step));
                }
            }
            None
        }
    });
    page.expect(&updated);
}

impl<'node> Explanation<'node> {
    fn vhost(&self, name: &str) -> &Vhost<'node> {
        self.vhosts.iter().find(|vhost| vhost.name() == name).unwrap_or_else(|| panic!("a vhost of the page: {name}"))
    }

    fn comes_about(&mut self, what: &str) {
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
            ["release"] => self.held = None,
            ["locked", "by", holder, "in", vhost] => {
                let arguments =
                    json!({"x-queue-type": "classic", "x-topo-holder": holder, "x-topo-token": "another's"});
                let vhost = self.vhost(vhost);
                let lock = json!({"durable": true, "arguments": arguments});
                vhost.http().put(&vhost.path("queues", &["topo.lock"]), &lock).expect_status(201);
            }
            ["guest", "may", "everything", "in", vhost] => {
                let everything = json!({"configure": ".*", "write": ".*", "read": ".*"});
                let vhost = self.vhost(vhost);
                vhost.http().put(&vhost.path("permissions", &["guest"]), &everything).expect_status(201);
            }
            ["a", "minute", "in", vhost] => {
                let vhost = self.vhost(vhost);
                vhost.http().delete(&vhost.path("queues", &["topo.lock"])).expect_status(204);
            }
            _ => panic!("nobody knows how this comes about: {what}"),
        }
    }
}

/// The commands of a pipeline, in order: GitHub's `run`, GitLab's `script`, pre-commit's `entry`.
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

#[test]
fn first_plan() {
    is_true("first-plan", &["shop"], &[]);
}

#[test]
fn adopting() {
    // Elsewhere a plan in it has other bindings, or one hazard more, as the page says.
    if !Node::shared().at_least(3, 10) || Node::shared().at_least(4, 0) {
        return;
    }
    is_true("adopting", &["store", "workshop"], &[]);
}

#[test]
fn changing_a_live_queue() {
    is_true("changing-a-live-queue", &["depot"], &[]);
}

#[test]
fn retries() {
    is_true("retries", &[], &[]);
}

#[test]
fn pipelines() {
    is_true("pipelines", &["market"], &["topo-plan", "topo-apply"]);
}

#[test]
fn never() {
    is_true("never", &[], &[]);
}

#[test]
fn troubleshooting() {
    is_true("troubleshooting", &["bazaar"], &[]);
}
