//! A vhost and a user of one test, deleted when the test is over.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Amqp, Http, Node, until};

/// One segment of a path of the management API.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// A vhost of its own for one test.
pub(crate) struct Vhost<'node> {
    node: &'node Node,
    name: String,
}

impl<'node> Vhost<'node> {
    /// A vhost of exactly this name; see [`Node::vhost`] for one that is new by construction.
    pub(crate) fn create(node: &'node Node, name: String) -> Self {
        Self::create_with(node, name, &json!({}))
    }

    /// One that the test itself brings about, or topo: it is only deleted.
    pub(crate) fn to_come(node: &'node Node, name: &str) -> Self {
        Self { node, name: name.to_owned() }
    }

    /// The same as [`Self::create`], with settings.
    pub(crate) fn create_with(node: &'node Node, name: String, settings: &Value) -> Self {
        let vhost = Self { node, name };
        vhost.make(settings);
        vhost
    }

    /// Deletes it and makes it anew, for settings that some versions take at creation alone.
    pub(crate) fn recreate(&self, settings: &Value) {
        self.delete();
        assert!(self.make(settings), "{} was there", self.name);
    }

    /// Deletes it before the test is over.
    pub(crate) fn delete(&self) {
        until("the end of a vhost", || {
            let answer = self.http().send("DELETE", &self.own_path(), None).ok()?;
            // Gone already: by a request whose answer did not come.
            let is_gone = answer.status == 204 || answer.status == 404;
            assert!(is_gone || answer.status >= 500, "the broker said: {}", answer.body);
            is_gone.then_some(())
        });
    }

    /// Makes it, and says whether it is new.
    fn make(&self, settings: &Value) -> bool {
        let mut tries = 0;
        // A busy 3.8 keeps the request waiting behind those of others, and hangs up after a minute; what it has begun by
        // then, it goes on with. Who asks again before that is done is told that the vhost is there, but may not use it:
        // its creator's permissions are the last that a creation writes.
        until("a vhost", || {
            tries += 1;
            let answer = self.http().send("PUT", &self.own_path(), Some(settings)).ok()?;
            if answer.status >= 500 {
                return None;
            }
            assert!(answer.is_success(), "the broker said: {}", answer.body);
            let everything = json!({"configure": ".*", "write": ".*", "read": ".*"});
            let of_guest = self.path("permissions", &["guest"]);
            let is_new = answer.status == 201;
            let is_done = is_new || self.http().send("PUT", &of_guest, Some(&everything)).ok()?.is_success();
            is_done.then_some(is_new || tries > 1)
        })
    }

    /// Waits until each node of a cluster has it.
    pub(crate) fn until_on_all_nodes(&self) {
        until("the vhost on all nodes", || {
            let nodes = self.http().get("/api/nodes?columns=name").expect_status(200);
            let vhost = self.http().get(&self.own_path()).found();
            let is_missing = |node: &&Value| vhost["cluster_state"][node["name"].as_str().unwrap()] != "running";
            // A node that has just joined may not have heard of it.
            let missing = nodes.as_array().unwrap().iter().find(is_missing).map(|node| node["name"].as_str().unwrap());
            let Some(node) = missing else { return Some(()) };
            self.http().send("POST", &format!("{}/start/{}", self.own_path(), segment(node)), None).ok();
            None
        });
    }

    pub(crate) fn node(&self) -> &'node Node {
        self.node
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn own_path(&self) -> String {
        format!("/api/vhosts/{}", segment(&self.name))
    }

    /// `path("queues", &["a/b"])` is `/api/queues/VHOST/a%2Fb`.
    pub(crate) fn path(&self, kind: &str, names: &[&str]) -> String {
        let mut path = format!("/api/{kind}/{}", segment(&self.name));
        for name in names {
            path.push('/');
            path.push_str(&segment(name));
        }
        path
    }

    /// The management API as administrator.
    pub(crate) fn http(&self) -> Http {
        self.node.http()
    }

    /// A new AMQP connection to this vhost, as administrator.
    pub(crate) fn amqp(&self) -> Amqp {
        Amqp::connect(self.node.amqp_port(), &self.name, "guest", "guest")
    }

    /// All objects of a kind (`queues`, `exchanges`, `bindings`, `policies`) as the management API lists them, without
    /// the exchanges that every vhost has and without the bindings of the default exchange.
    pub(crate) fn list(&self, kind: &str) -> Vec<Value> {
        // A node that has just started answers 500 for as long as it has no statistics of a new queue (seen on 3.10.8).
        let answer = until(&format!("a list of {kind}"), || {
            let answer = self.http().get(&self.path(kind, &[]));
            (answer.status != 500).then_some(answer)
        });
        let listed = answer.expect_status(200);
        let mut objects = listed.as_array().expect("lists are arrays").clone();
        objects.retain(|object| match kind {
            "exchanges" => object["name"] != "" && !object["name"].as_str().unwrap_or("").starts_with("amq."),
            "bindings" => object["source"] != "",
            _ => true,
        });
        objects
    }

    /// The names of all objects of a kind, in order.
    pub(crate) fn names(&self, kind: &str) -> Vec<String> {
        let mut names: Vec<String> =
            self.list(kind).iter().map(|object| object["name"].as_str().unwrap_or_default().to_owned()).collect();
        names.sort();
        names
    }

    /// One queue as the management API shows it; null when there is none.
    pub(crate) fn queue(&self, name: &str) -> Value {
        // 500 in the moment in which it goes (seen on 4.3.6).
        let answer = until(&format!("queue {name}"), || {
            let answer = self.http().get(&self.path("queues", &[name]));
            (answer.status != 500).then_some(answer)
        });
        answer.found()
    }

    /// One exchange as the management API shows it; null when there is none.
    pub(crate) fn exchange(&self, name: &str) -> Value {
        self.http().get(&self.path("exchanges", &[name])).found()
    }

    /// Waits until the management API says that the queue holds this many messages, ready and unacknowledged together.
    /// Its numbers lag behind by up to 8 s.
    pub(crate) fn until_counted(&self, queue: &str, messages: u64) {
        until(&format!("{messages} messages in {queue}"), || {
            (self.queue(queue)["messages"].as_u64() == Some(messages)).then_some(())
        });
    }
}

impl Drop for Vhost<'_> {
    fn drop(&mut self) {
        let _ = self.http().send("DELETE", &self.own_path(), None);
    }
}

/// A user of its own for one test.
pub(crate) struct User<'node> {
    node: &'node Node,
    pub(crate) name: String,
    pub(crate) password: String,
}

impl<'node> User<'node> {
    pub(crate) fn create(node: &'node Node, name: String, tags: &str) -> Self {
        // Easy to recognize wherever it must not be printed.
        let password = format!("secret-of-{name}");
        let user = Self { node, name, password };
        user.node.http().put(&user.own_path(), &json!({"password": user.password, "tags": tags})).expect_status(201);
        user
    }

    /// One that the test itself brings about, with a password of its own: it is only deleted.
    pub(crate) fn to_come(node: &'node Node, name: &str) -> Self {
        Self { node, name: name.to_owned(), password: String::new() }
    }

    fn own_path(&self) -> String {
        format!("/api/users/{}", segment(&self.name))
    }

    /// Grants permissions on a vhost: three regular expressions over names.
    pub(crate) fn may(self, vhost: &Vhost<'_>, configure: &str, write: &str, read: &str) -> Self {
        let permissions = json!({"configure": configure, "write": write, "read": read});
        let path = vhost.path("permissions", &[&self.name]);
        let answer = self.node.http().put(&path, &permissions);
        assert!(answer.is_success(), "{answer:?}");
        self
    }

    /// Grants everything on a vhost.
    pub(crate) fn may_everything(self, vhost: &Vhost<'_>) -> Self {
        self.may(vhost, ".*", ".*", ".*")
    }

    /// The management API as this user.
    pub(crate) fn http(&self) -> Http {
        Http::to(&self.node.url(), &self.name, &self.password)
    }

    /// A new AMQP connection as this user.
    pub(crate) fn amqp(&self, vhost: &Vhost<'_>) -> Amqp {
        Amqp::connect(self.node.amqp_port(), vhost.name(), &self.name, &self.password)
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        let _ = self.node.http().send("DELETE", &self.own_path(), None);
    }
}
