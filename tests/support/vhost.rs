//! A vhost and a user of one test, which are deleted at its end.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Amqp, Http, Node, until};

/// Encodes a name as a path segment of the management API.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// A vhost of one test.
pub(crate) struct Vhost<'node> {
    node: &'node Node,
    name: String,
}

impl<'node> Vhost<'node> {
    /// Creates a vhost with exactly this name; see [`Node::vhost`] for a unique name.
    pub(crate) fn create(node: &'node Node, name: String) -> Self {
        Self::create_with(node, name, &json!({}))
    }

    /// Returns a vhost that the test or topo creates. Dropping the value only deletes the vhost.
    pub(crate) fn to_come(node: &'node Node, name: &str) -> Self {
        Self { node, name: name.to_owned() }
    }

    /// Creates a vhost as [`Self::create`], with settings.
    pub(crate) fn create_with(node: &'node Node, name: String, settings: &Value) -> Self {
        let vhost = Self { node, name };
        vhost.make(settings);
        vhost
    }

    /// Deletes the vhost and creates it again, for settings that some versions accept only at creation.
    pub(crate) fn recreate(&self, settings: &Value) {
        self.delete();
        assert!(self.make(settings), "{} existed", self.name);
    }

    /// Deletes the vhost before the end of the test.
    pub(crate) fn delete(&self) {
        until("the end of a vhost", || {
            let answer = self.http().send("DELETE", &self.own_path(), None).ok()?;
            // An earlier request without a response has already deleted the vhost.
            let is_gone = answer.status == 204 || answer.status == 404;
            assert!(is_gone || answer.status >= 500, "the broker answered: {}", answer.body);
            is_gone.then_some(())
        });
    }

    /// Creates the vhost. Returns true if it is new.
    fn make(&self, settings: &Value) -> bool {
        let mut tries = 0;
        // A busy 3.8 queues requests and closes the connection after a minute, but continues the creation. A second
        // request reports an existing vhost before its permissions exist, which the broker writes last.
        until("a vhost", || {
            tries += 1;
            let answer = self.http().send("PUT", &self.own_path(), Some(settings)).ok()?;
            if answer.status >= 500 {
                return None;
            }
            assert!(answer.is_success(), "the broker answered: {}", answer.body);
            let everything = json!({"configure": ".*", "write": ".*", "read": ".*"});
            let of_guest = self.path("permissions", &["guest"]);
            let is_new = answer.status == 201;
            let is_done = is_new || self.http().send("PUT", &of_guest, Some(&everything)).ok()?.is_success();
            is_done.then_some(is_new || tries > 1)
        })
    }

    /// Waits until the vhost exists on each node of a cluster.
    pub(crate) fn until_on_all_nodes(&self) {
        until("the vhost on all nodes", || {
            let nodes = self.http().list("/api/nodes?columns=name");
            let vhost = self.http().get(&self.own_path()).found();
            let is_missing = |node: &&Value| vhost["cluster_state"][node["name"].as_str().unwrap()] != "running";
            // A node that has just joined may not have the vhost yet.
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

    /// Returns the path of an object. For example, `path("queues", &["a/b"])` is `/api/queues/VHOST/a%2Fb`.
    pub(crate) fn path(&self, kind: &str, names: &[&str]) -> String {
        let mut path = format!("/api/{kind}/{}", segment(&self.name));
        for name in names {
            path.push('/');
            path.push_str(&segment(name));
        }
        path
    }

    /// Returns a client of the management API, as administrator.
    pub(crate) fn http(&self) -> Http {
        self.node.http()
    }

    /// Opens an AMQP connection to this vhost, as administrator.
    pub(crate) fn amqp(&self) -> Amqp {
        Amqp::connect(self.node.amqp_port(), &self.name, "guest", "guest")
    }

    /// Returns all objects of a kind (`queues`, `exchanges`, `bindings`, `policies`) from the management API, without
    /// predeclared exchanges and bindings of the default exchange.
    pub(crate) fn list(&self, kind: &str) -> Vec<Value> {
        // A node that has just started responds with 500 while it has no statistics of a new queue (observed on
        // 3.10.8).
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

    /// Returns the sorted names of all objects of a kind.
    pub(crate) fn names(&self, kind: &str) -> Vec<String> {
        let mut names: Vec<String> =
            self.list(kind).iter().map(|object| object["name"].as_str().unwrap_or_default().to_owned()).collect();
        names.sort();
        names
    }

    /// Returns a queue from the management API; null if it does not exist.
    pub(crate) fn queue(&self, name: &str) -> Value {
        // The broker responds with 500 during the deletion of a queue (observed on 4.3.6).
        let answer = until(&format!("queue {name}"), || {
            let answer = self.http().get(&self.path("queues", &[name]));
            (answer.status != 500).then_some(answer)
        });
        answer.found()
    }

    /// Returns the number of consumers of a queue in the list of consumers. The count in [`Self::queue`] can change
    /// earlier.
    pub(crate) fn listed_consumers(&self, queue: &str) -> usize {
        let consumers = self.http().get(&self.path("consumers", &[])).expect_status(200);
        consumers.as_array().unwrap().iter().filter(|consumer| consumer["queue"]["name"] == queue).count()
    }

    /// Returns an exchange from the management API; null if it does not exist.
    pub(crate) fn exchange(&self, name: &str) -> Value {
        self.http().get(&self.path("exchanges", &[name])).found()
    }

    /// Waits until the management API reports this total of ready and unacknowledged messages, which may take 8 s.
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

/// A user of one test.
pub(crate) struct User<'node> {
    node: &'node Node,
    pub(crate) name: String,
    pub(crate) password: String,
}

impl<'node> User<'node> {
    pub(crate) fn create(node: &'node Node, name: String, tags: &str) -> Self {
        // The password is easy to recognize in output.
        let password = format!("secret-of-{name}");
        let user = Self { node, name, password };
        user.node.http().put(&user.own_path(), &json!({"password": user.password, "tags": tags})).expect_status(201);
        user
    }

    /// Returns a user that the test creates with a password. Dropping the value only deletes the user.
    pub(crate) fn to_come(node: &'node Node, name: &str) -> Self {
        Self { node, name: name.to_owned(), password: String::new() }
    }

    fn own_path(&self) -> String {
        format!("/api/users/{}", segment(&self.name))
    }

    /// Grants permissions on a vhost, as three regular expressions that match names.
    pub(crate) fn may(self, vhost: &Vhost<'_>, configure: &str, write: &str, read: &str) -> Self {
        let permissions = json!({"configure": configure, "write": write, "read": read});
        let path = vhost.path("permissions", &[&self.name]);
        let answer = self.node.http().put(&path, &permissions);
        assert!(answer.is_success(), "{answer:?}");
        self
    }

    /// Grants all permissions on a vhost.
    pub(crate) fn may_everything(self, vhost: &Vhost<'_>) -> Self {
        self.may(vhost, ".*", ".*", ".*")
    }

    /// Returns a client of the management API, as this user.
    pub(crate) fn http(&self) -> Http {
        Http::to(&self.node.url(), &self.name, &self.password)
    }

    /// Opens an AMQP connection as this user.
    pub(crate) fn amqp(&self, vhost: &Vhost<'_>) -> Amqp {
        Amqp::connect(self.node.amqp_port(), vhost.name(), &self.name, &self.password)
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        let _ = self.node.http().send("DELETE", &self.own_path(), None);
    }
}
